// Shows only those rows of the table of floors that contain every word of the search field.
const field = document.getElementById("floor-filter")
if (field) {
  const rows = [...document.querySelectorAll("#floor-table tr")].slice(1)
  const show = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean)
    let shown = 0
    for (const row of rows) {
      const text = row.textContent.toLowerCase()
      row.hidden = !words.every((word) => text.includes(word))
      shown += !row.hidden
    }
    document.getElementById("floor-count").textContent = `${shown} of ${rows.length} rows`
  }
  field.addEventListener("input", show)
  show()
}
