// Whether somebody points: a page that moves below a resting pointer makes the browser tell of a move, too.

let pointerX = NaN;
let pointerY = NaN;

function notePointer(event) {
  pointerX = event.screenX;
  pointerY = event.screenY;
}

// on the window, and so after the handlers of what was pointed at
for (const kind of ["pointermove", "pointerdown", "pointerup"]) window.addEventListener(kind, notePointer, { passive: true });

/** Whether the pointer of a `pointermove` is where it was at the last event: then the page has moved, and not the hand. */
export const isResting = (event) => event.type === "pointermove" && event.screenX === pointerX && event.screenY === pointerY;
