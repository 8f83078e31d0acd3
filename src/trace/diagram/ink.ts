/**
 * The style of each message type: a color, a dash pattern and an arrowhead, so that types can be distinguished even
 * without color. A declared type gets the ink at its declared position. For any other type, a hash of its name selects
 * the ink; if that ink is taken, the type gets the next free one.
 */

export interface Ink {
  /** The index of the page's color, `--ink-0` … `--ink-7`. */
  readonly slot: number;
  /** An SVG dash array. Empty for a solid line. */
  readonly dash: string;
  readonly head: Head;
}

/**
 * An arrowhead as an SVG path, with its tip at the origin, pointing toward +x. Open arrowheads are stroked; the others
 * are filled.
 */
export interface Head {
  readonly path: string;
  readonly open: boolean;
}

const triangle: Head = { path: "M0 0L-10 -4L-10 4Z", open: false };
const chevron: Head = { path: "M-8.5 -4.8L0 0L-8.5 4.8", open: true };
const diamond: Head = { path: "M0 0L-5.5 -4.2L-11 0L-5.5 4.2Z", open: false };
const disc: Head = { path: "M0 0A3.9 3.9 0 1 1 -7.8 0A3.9 3.9 0 1 1 0 0Z", open: false };
const square: Head = { path: "M0 -3.4L0 3.4L-6.8 3.4L-6.8 -3.4Z", open: false };
const hollow: Head = { path: "M-1 0L-10 -4.2L-10 4.2Z", open: true };
const ring: Head = { path: "M-0.5 0A3.9 3.9 0 1 1 -8.3 0A3.9 3.9 0 1 1 -0.5 0Z", open: true };
const barb: Head = { path: "M-5 -4.8L0 0L-5 4.8M-10 -4.8L-5 0L-10 4.8", open: true };

const inks: readonly Ink[] = [
  { slot: 0, dash: "12 4", head: square },
  { slot: 1, dash: "4 2.5", head: hollow },
  { slot: 2, dash: "", head: triangle },
  { slot: 3, dash: "7 3.5", head: chevron },
  { slot: 4, dash: "9 3 1.5 3", head: disc },
  { slot: 5, dash: "9 3 1.5 3 1.5 3", head: ring },
  { slot: 6, dash: "1.5 3", head: diamond },
  { slot: 7, dash: "2.5 2.5", head: barb },
];

/**
 * Returns the ink at an index. If there are more types than colors, colors repeat with different dashes and arrowheads.
 */
function inkAt(index: number): Ink {
  const round = Math.floor(index / inks.length);
  if (round === 0) return inks[index] as Ink;
  const at = (shift: number): Ink => inks[(index + shift * round) % inks.length] as Ink;
  return { slot: at(0).slot, dash: at(3).dash, head: at(5).head };
}

/** Assigns a style to each message type. */
export class Inkwell {
  readonly #declared: ReadonlyMap<string, Ink>;
  readonly #byName: Map<string, Ink>;

  /** @param declared each declared type's position in the list of inks */
  constructor(declared: Readonly<Record<string, number>> = {}) {
    const inks = new Map(Object.values(declared).map((place) => [place, inkAt(place)]));
    this.#declared = new Map(Object.entries(declared).map(([name, place]) => [name, inks.get(place) as Ink]));
    this.#byName = new Map(this.#declared);
  }

  of(name: string): Ink {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const inner = this.#declaredWithin(name);
    if (inner !== undefined) return inner;
    const taken = new Set(this.#byName.values());
    const wish = hash(name) % inks.length;
    const inTurn = [...inks.slice(wish), ...inks.slice(0, wish)];
    const ink = (inTurn.find((each) => !taken.has(each)) ?? inTurn[0]) as Ink;
    this.#byName.set(name, ink);
    return ink;
  }

  /** Returns the declared ink of the same message without some of its outer parts. */
  #declaredWithin(name: string): Ink | undefined {
    const path = name.split(".");
    return path.map((_, outer) => this.#declared.get(path.slice(outer + 1).join("."))).find((ink) => ink !== undefined);
  }
}

/** Computes the FNV-1a hash. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return value;
}
