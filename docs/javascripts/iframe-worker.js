// Browsers give pages that were opened from disk no web workers. There, search runs in a hidden frame instead, so that
// the site needs neither a server nor a network. On the web this file does nothing.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe")
    #waiting = []

    constructor(url) {
      super()
      this.#frame.hidden = true
      this.#frame.srcdoc = "<!doctype html><title>search</title>"
      this.#frame.addEventListener("load", () => this.#start(url), { once: true })
      document.documentElement.appendChild(this.#frame)
    }

    // What is sent before the script has run waits for it.
    postMessage(data) {
      if (this.#waiting) this.#waiting.push(data)
      else this.#deliver(data)
    }

    #start(url) {
      const inside = this.#frame.contentWindow
      inside.postMessage = (data) =>
        setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })))
      const script = inside.document.createElement("script")
      script.src = url
      script.addEventListener("load", () => {
        const waiting = this.#waiting
        this.#waiting = null
        waiting.forEach((data) => this.#deliver(data))
      })
      inside.document.body.appendChild(script)
    }

    #deliver(data) {
      const inside = this.#frame.contentWindow
      inside.dispatchEvent(new inside.MessageEvent("message", { data: inside.structuredClone(data) }))
    }
  }
}
