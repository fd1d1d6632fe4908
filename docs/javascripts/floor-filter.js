// Shows only those rows of the table of floors that contain every word of the search field and belong to the family.
const field = document.getElementById("floor-filter")
if (field) {
  const family = document.getElementById("floor-family")
  const rows = [...document.querySelectorAll("#floor-table tr[data-family]:not(.family)")]
  const headings = [...document.querySelectorAll("#floor-table tr.family")]
  const show = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean)
    const shown = rows.filter((row) => {
      const text = `${row.textContent} ${row.dataset.family}`.toLowerCase()
      row.hidden =
        (family.value && row.dataset.family !== family.value) || !words.every((word) => text.includes(word))
      return !row.hidden
    })
    const families = new Set(shown.map((row) => row.dataset.family))
    for (const heading of headings) heading.hidden = !families.has(heading.dataset.family)
    document.getElementById("floor-count").textContent = `${shown.length} of ${rows.length} rows`
  }
  field.addEventListener("input", show)
  family.addEventListener("change", show)
  show()
}
