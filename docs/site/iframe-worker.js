// Lets the search of the site run where a browser allows no worker: in pages opened from a folder.
// A hidden frame stands in for the worker; what either side posts becomes an event of the other.
"use strict";

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.onmessage = this.onerror = this.onmessageerror = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);

      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.tell(this, data);
      inside.importScripts = () => {};
      this.waiting = [];
      const script = inside.document.createElement("script");
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        for (const data of waiting) this.postMessage(data);
      };
      script.src = address;
      inside.document.body.append(script);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.tell(this.frame.contentWindow, data);
    }

    tell(side, data) {
      queueMicrotask(() => {
        const event = new MessageEvent("message", { data });
        side.dispatchEvent(event);
        if (side === this && this.onmessage) this.onmessage(event);
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
