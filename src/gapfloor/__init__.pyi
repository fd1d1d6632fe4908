from gapfloor.api.analyse import analyse as analyse
from gapfloor.api.audit_ledger import (
    audit_ledger as audit_ledger,
)
from gapfloor.api.audit_ledger import (
    audit_registry as audit_registry,
)
from gapfloor.api.audit_ledger import (
    audit_verify as audit_verify,
)
from gapfloor.api.audit_scan import audit_scan as audit_scan
from gapfloor.api.audit_trace import audit_trace as audit_trace
from gapfloor.api.calibrate import calibrate as calibrate
from gapfloor.api.calibrate import calibrate_box as calibrate_box
from gapfloor.api.card import (
    card_check as card_check,
)
from gapfloor.api.card import (
    card_compare as card_compare,
)
from gapfloor.api.card import (
    card_export as card_export,
)
from gapfloor.api.check_levels import check_levels as check_levels
from gapfloor.api.cka import cka as cka
from gapfloor.api.compare import compare as compare
from gapfloor.api.engines import (
    doctor as doctor,
)
from gapfloor.api.engines import (
    engines_check as engines_check,
)
from gapfloor.api.engines import (
    engines_list as engines_list,
)
from gapfloor.api.evaluate import evaluate as evaluate
from gapfloor.api.floor import measure_floor as measure_floor
from gapfloor.api.known_floor import known_floor as known_floor
from gapfloor.api.known_floor import known_floors as known_floors
from gapfloor.api.levels_gap import levels_gap as levels_gap
from gapfloor.api.load_policy import load_policy as load_policy
from gapfloor.api.plan_files import (
    plan_addendum as plan_addendum,
)
from gapfloor.api.plan_files import (
    plan_check as plan_check,
)
from gapfloor.api.plan_files import (
    plan_init as plan_init,
)
from gapfloor.api.plan_files import (
    plan_lock as plan_lock,
)
from gapfloor.api.plan_next import plan_next as plan_next
from gapfloor.api.plot import plot as plot
from gapfloor.api.power import power as power
from gapfloor.api.replay import replay as replay
from gapfloor.api.report import write_report as write_report
from gapfloor.api.sweep import sweep as sweep
from gapfloor.api.train import train as train
from gapfloor.api.training_curve import training_curve as training_curve
from gapfloor.api.verify import verify_store as verify_store
from gapfloor.audit.probe import probe_rule as probe_rule
from gapfloor.integrations.train_on_levels import TrainOnLevels as TrainOnLevels
from gapfloor.plan.model import Plan as Plan
from gapfloor.records.store import Store as Store
from gapfloor.study.model import Study as Study

__version__: str
