/** User input on the diagram: the wheel, dragging and keys zoom and pan it. Shares are fractions of the width. */

export interface Gestures {
  /**
   * Zooms. A factor below 1 zooms in. `share` is the position of the fixed point, as a fraction of the width. Null
   * means the middle.
   */
  zoom(factor: number, share: number | null): void;
  pan(share: number): void;
  toStart(): void;
  toPresent(): void;
  togglePause(): void;
  escape(): void;
}

const WHEEL_ZOOM = 0.0022;
const KEY_PAN = 0.12;
const KEY_ZOOM = 1.6;
/** A pointer movement shorter than this counts as a click. */
const DRAG_PX = 4;

/** Listens for gestures on the element. Returns a function that removes the listeners. */
export function gesturesOn(element: HTMLElement, gestures: Gestures): () => void {
  const controller = new AbortController();
  const { signal } = controller;
  element.addEventListener("wheel", (event) => wheel(event, element, gestures), { signal, passive: false });
  element.addEventListener("keydown", (event) => key(event, element, gestures), { signal });
  element.addEventListener("dblclick", (event) => gestures.zoom(0.25, shareOf(event, element)), { signal });
  drag(element, gestures, signal);
  return () => controller.abort();
}

/**
 * Handles the wheel. A horizontal wheel pans. A vertical wheel zooms if Ctrl or ⌘ is pressed or if the diagram has the
 * focus; otherwise the page scrolls.
 */
function wheel(event: WheelEvent, element: HTMLElement, gestures: Gestures): void {
  const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
  if (isSideways) gestures.pan((event.deltaX || event.deltaY) / element.clientWidth);
  else if (event.ctrlKey || event.metaKey || element.contains(document.activeElement))
    gestures.zoom(Math.exp(event.deltaY * WHEEL_ZOOM), shareOf(event, element));
  else return;
  event.preventDefault();
}

function key(event: KeyboardEvent, element: HTMLElement, gestures: Gestures): void {
  if (event.key === "Escape") return gestures.escape();
  // Except for the zoom keys, buttons and messages in the diagram handle these keys themselves.
  const isOwn = event.target === element;
  const keys: Record<string, () => void> = {
    "+": () => gestures.zoom(1 / KEY_ZOOM, null),
    "=": () => gestures.zoom(1 / KEY_ZOOM, null),
    "-": () => gestures.zoom(KEY_ZOOM, null),
    ...(isOwn && {
      ArrowLeft: () => gestures.pan(-KEY_PAN),
      ArrowRight: () => gestures.pan(KEY_PAN),
      Home: gestures.toStart,
      End: gestures.toPresent,
      " ": gestures.togglePause,
    }),
  };
  const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
  if (act === undefined) return;
  act();
  event.preventDefault();
}

function drag(element: HTMLElement, gestures: Gestures, signal: AbortSignal): void {
  let from: number | null = null;
  let moved = false;
  element.addEventListener(
    "pointerdown",
    (event) => {
      const isOnButton = event.target instanceof Element && event.target.closest("button") !== null;
      if (event.button !== 0 || isOnButton) return;
      from = event.clientX;
      moved = false;
    },
    { signal },
  );
  element.addEventListener(
    "pointermove",
    (event) => {
      if (from === null || (!moved && Math.abs(event.clientX - from) < DRAG_PX)) return;
      if (!moved) element.setPointerCapture(event.pointerId);
      moved = true;
      element.classList.add("dragged");
      gestures.pan((from - event.clientX) / element.clientWidth);
      from = event.clientX;
    },
    { signal },
  );
  const drop = () => {
    from = null;
    element.classList.remove("dragged");
  };
  element.addEventListener("pointerup", drop, { signal });
  element.addEventListener("pointercancel", drop, { signal });
  // Ignore the click at the end of a drag.
  element.addEventListener(
    "click",
    (event) => {
      if (moved) event.stopPropagation();
      moved = false;
    },
    { signal, capture: true },
  );
}

function shareOf(event: MouseEvent, element: HTMLElement): number {
  return (event.clientX - element.getBoundingClientRect().left) / element.clientWidth;
}
