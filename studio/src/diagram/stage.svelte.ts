/**
 * Keeps the picture up to date at low cost. It is laid out again only after a change. Between changes it is only
 * shifted: all coordinates stay the same, so no element has to be updated.
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
/**
 * The maximum fraction of time spent on layout and on updating elements. Painting takes about the same amount again.
 */
const LAYOUT_SHARE = 0.05;
/** The interval between updates without new entries. These are needed because the present advances. */
const IDLE_MS = 1_000;

export interface Rows {
  readonly nodes: readonly NodeId[];
  readonly rowHeight: number;
  readonly top: number;
}

/** Which part of the chronicle is shown, and how. The object stays the same as long as its contents do. */
export interface Shown {
  history(chronicle: Chronicle): History<Message>;
  readonly showing: Showing;
}

/** How the picture is positioned under the window, in pixels. */
export interface Shift {
  readonly left: number;
  /** The x coordinate of the present. */
  readonly present: number;
  readonly msPerPx: number;
}

export class Stage {
  picture = $state.raw<Picture<Message> | null>(null);

  #laidOutAt = 0;
  #tookMs = 0;
  #drawnRevision = -1;
  #shown: Shown | null = null;

  /** Returns the width of the picture under a window of `width` pixels. */
  static widthUnder(width: number): number {
    return Math.round(width * (1 + AHEAD));
  }

  /**
   * Updates the picture. Returns its shift, or null if there is nothing to show. Call this once per browser frame, with
   * the frame's start time.
   */
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
    // Drags are never delayed.
    if (picture === null || isTurn || wanted !== picture.frame || shown !== this.#shown) {
      const began = performance.now();
      picture = layOut(shown.history(studio.chronicle), wanted, shown.showing);
      this.picture = picture;
      this.#shown = shown;
      this.#laidOutAt = performance.now();
      // Measure after the microtask that updates the elements, which is already queued.
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

  /** Returns the current frame as long as it covers the window. Otherwise, returns a new one. */
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
