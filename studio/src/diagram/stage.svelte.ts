/**
 * Keeps the picture up to date at little cost. It is laid out again only after a change. Between changes it is merely
 * shifted: all coordinates stay the same, so no element is touched.
 */
import type { NodeId } from "../../../src/core/protocol.ts";
import type { Chronicle, Message } from "../history/chronicle.ts";
import type { Studio } from "../live/studio.svelte.ts";
import { AHEAD, type Frame } from "./frame.ts";
import { layOut } from "./layout.ts";
import type { History, Picture, Showing } from "./picture.ts";
import type { Viewport } from "./viewport.svelte.ts";
import type { Window } from "./window.ts";

const LAYOUT_MS = 120;
/** Layout and updates of the elements take at most this share of the time. Painting takes as much again. */
const LAYOUT_SHARE = 0.05;
/** The present moves on even without new entries. */
const IDLE_MS = 1_000;

export interface Rows {
  readonly nodes: readonly NodeId[];
  readonly rowHeight: number;
  readonly top: number;
}

/** The part of the chronicle that is shown, and how: the same object as long as that is the same. */
export interface Shown {
  history(chronicle: Chronicle): History<Message>;
  readonly showing: Showing;
}

/** The position of the picture under the window, in pixels. */
export interface Shift {
  readonly left: number;
  /** The x of the present. */
  readonly present: number;
  readonly msPerPx: number;
}

export class Stage {
  picture = $state.raw<Picture<Message> | null>(null);

  #laidOutAt = 0;
  #tookMs = 0;
  #drawnRevision = -1;
  #shown: Shown | null = null;

  /** The width of the picture under a window of `width` pixels. */
  static widthUnder(width: number): number {
    return Math.round(width * (1 + AHEAD));
  }

  /** Call it once per browser frame, with the frame's start time. Null while there is nothing to show. */
  update(studio: Studio, viewport: Viewport, rows: Rows, width: number, begin: number, shown: Shown): Shift | null {
    if (studio.chronicle === null || width === 0) return null;
    const now = studio.now();
    const isNews = studio.revision !== this.#drawnRevision;
    const age = performance.now() - this.#laidOutAt;
    const isDue = age > IDLE_MS || (age > Math.max(LAYOUT_MS, this.#tookMs / LAYOUT_SHARE) && isNews);
    let { picture } = this;
    const isTurn = picture === null || (isDue && studio.turns.take("layout", begin));
    if (isTurn) viewport.axis?.update(studio.chronicle);
    const window = viewport.window(now);
    const wanted = this.#frameFor(window, viewport, rows, width);
    // A drag never waits.
    if (picture === null || isTurn || wanted !== picture.frame || shown !== this.#shown) {
      const began = performance.now();
      picture = layOut(shown.history(studio.chronicle), wanted, shown.showing);
      this.picture = picture;
      this.#shown = shown;
      this.#laidOutAt = performance.now();
      // Elements are updated in a microtask that is already queued. This one comes after it.
      queueMicrotask(() => {
        this.#tookMs = performance.now() - began;
      });
      this.#drawnRevision = studio.revision;
    }
    const msPerPx = window.spanMs / width;
    return {
      left: (picture.frame.from - window.from) / msPerPx,
      present: (viewport.placeOf(now) - window.from) / msPerPx,
      msPerPx,
    };
  }

  /** The current frame, as long as it is sufficient. */
  #frameFor(window: Window, { origin, following, axis }: Viewport, rows: Rows, width: number): Frame {
    const frame = this.picture?.frame;
    const wide = Stage.widthUnder(width);
    const spanMs = window.spanMs * (wide / width);
    if (frame !== undefined) {
      const drift = (window.from - frame.from) / window.spanMs;
      const sameScale = Math.abs((frame.to - frame.from) / spanMs - 1) < 1e-6 && frame.width === wide;
      const sameRows = frame.nodes === rows.nodes && frame.rowHeight === rows.rowHeight && frame.top === rows.top;
      const sameMood = frame.origin === origin && frame.still === !following && frame.placeOf === axis?.place;
      const covers = following ? drift >= 0 && drift < AHEAD * 0.9 : Math.abs(drift) < 1e-6;
      if (sameScale && sameRows && sameMood && covers) return frame;
    }
    const place = axis === null ? {} : { placeOf: axis.place };
    return { ...rows, from: window.from, to: window.from + spanMs, width: wide, origin, still: !following, ...place };
  }
}
