from gapfloor.api.analyse import analyse as analyse
from gapfloor.api.audit import audit as audit
from gapfloor.api.calibrate import calibrate as calibrate
from gapfloor.api.checkpoints import sweep as sweep
from gapfloor.api.checkpoints import training_curve as training_curve
from gapfloor.api.cka import cka as cka
from gapfloor.api.compare import compare as compare
from gapfloor.api.doctor import doctor as doctor
from gapfloor.api.evaluate import evaluate as evaluate
from gapfloor.api.floor import floor as floor
from gapfloor.api.floor import known_floor as known_floor
from gapfloor.api.levels import levels as levels
from gapfloor.api.power import power as power
from gapfloor.api.report import report as report
from gapfloor.api.train import train as train
from gapfloor.integrations.train_on_levels import TrainOnLevels as TrainOnLevels
from gapfloor.plan.model import Plan as Plan
from gapfloor.records.store import Store as Store
from gapfloor.study.model import Study as Study

__version__: str
