/**
 * Finds space for text. Marks and life lines are placed first, then labels in order of importance. Text never overlaps
 * other text, marks or life lines, and never crosses the edge. Labels that do not fit are omitted, because users can
 * hover to see them.
 */
import { textWidth } from "../../../src/trace/picture/boxes.ts";

/** A text and its position. `y` is the baseline. Rotated text is centered. */
export interface Letter {
  readonly key: string;
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly radians: number;
  readonly style: LetterStyle;
  /** The name of one of the page's colors. */
  readonly colour: string;
  /** The x coordinate of the item that the text belongs to. */
  readonly of: number;
}

export type LetterStyle = "plain" | "bold" | "role" | "arrow" | "clock" | "state";

export const LETTER_PX: Readonly<Record<LetterStyle, number>> = {
  plain: 11.5,
  bold: 11.5,
  role: 12,
  arrow: 10.5,
  clock: 10.5,
  state: 10,
};

export const widthOf = (text: string, style: LetterStyle): number => textWidth(text, LETTER_PX[style]) * 0.93;

const CELL_PX = 4;
/** The margin on both sides of a text, needed because text widths are estimates. */
const EDGE_PX = 5;

/** The sheet as a grid of squares. */
export class Room {
  readonly #width: number;
  readonly #height: number;
  readonly #columns: number;
  readonly #rows: number;
  readonly #taken: Uint8Array;
  /** The number of arrows that cross each square. */
  readonly #passed: Uint8Array;

  constructor(width: number, height: number) {
    this.#width = width;
    this.#height = height;
    this.#columns = Math.max(1, Math.ceil(width / CELL_PX));
    this.#rows = Math.max(1, Math.ceil(height / CELL_PX));
    this.#taken = new Uint8Array(this.#columns * this.#rows);
    this.#passed = new Uint8Array(this.#columns * this.#rows);
  }

  take(x: number, y: number, width: number, height: number): void {
    this.#each(x, y, width, height, (cell) => {
      this.#taken[cell] = 1;
    });
  }

  /** Returns whether the whole box is on the sheet and free. */
  isFree(x: number, y: number, width: number, height: number): boolean {
    if (x < EDGE_PX || y < 0 || x + width > this.#width - EDGE_PX || y + height > this.#height) return false;
    let free = true;
    this.#each(x, y, width, height, (cell) => {
      if (this.#taken[cell] !== 0) free = false;
    });
    return free;
  }

  /**
   * Counts an arrow in the squares that it crosses. Arrows may begin and end far from the sheet, so only the part on
   * the sheet is examined.
   */
  pass(x1: number, y1: number, x2: number, y2: number): void {
    const shareAt = (x: number): number => (x2 === x1 ? 0 : Math.min(1, Math.max(0, (x - x1) / (x2 - x1))));
    const [one, other] = [shareAt(0), shareAt(this.#columns * CELL_PX)];
    const [from, to] = x2 === x1 ? [0, 1] : [Math.min(one, other), Math.max(one, other)];
    const steps = Math.ceil((Math.hypot(x2 - x1, y2 - y1) * (to - from)) / CELL_PX);
    let last = -1;
    for (let step = 0; step <= steps; step++) {
      const share = from + (steps === 0 ? 0 : (step / steps) * (to - from));
      const cell = this.#cell(x1 + (x2 - x1) * share, y1 + (y2 - y1) * share);
      if (cell !== -1 && cell !== last) this.#passed[cell] = Math.min(255, (this.#passed[cell] as number) + 1);
      last = cell;
    }
  }

  /** Returns the number of times that arrows cross the squares covered by the box. */
  passed(x: number, y: number, width: number, height: number): number {
    let count = 0;
    this.#each(x, y, width, height, (cell) => {
      count += this.#passed[cell] as number;
    });
    return count;
  }

  #cell(x: number, y: number): number {
    const [column, row] = [Math.floor(x / CELL_PX), Math.floor(y / CELL_PX)];
    return column < 0 || row < 0 || column >= this.#columns || row >= this.#rows ? -1 : row * this.#columns + column;
  }

  #each(x: number, y: number, width: number, height: number, act: (cell: number) => void): void {
    const [left, right] = [
      Math.max(0, Math.floor(x / CELL_PX)),
      Math.min(this.#columns - 1, Math.floor((x + width) / CELL_PX)),
    ];
    const [top, bottom] = [
      Math.max(0, Math.floor(y / CELL_PX)),
      Math.min(this.#rows - 1, Math.floor((y + height) / CELL_PX)),
    ];
    for (let row = top; row <= bottom; row++)
      for (let column = left; column <= right; column++) act(row * this.#columns + column);
  }
}

/** Offsets from a mark: above its line, below it, or one row higher. */
const PLACES = [
  { dx: 0, dy: -7 },
  { dx: -4, dy: 18 },
  { dx: -6, dy: -21 },
] as const;
const [ASCENT_PX, LETTER_HEIGHT_PX] = [10, 12];

/**
 * Places text at the first free position to the right of `x`, near the line at `y`. Returns null if it does not fit.
 */
export function placeBeside(
  room: Room,
  letter: Omit<Letter, "radians" | "x" | "y">,
  x: number,
  y: number,
): Letter | null {
  const width = widthOf(letter.text, letter.style);
  for (const { dx, dy } of PLACES) {
    const [left, baseline] = [x + dx, y + dy];
    if (!room.isFree(left, baseline - ASCENT_PX, width, LETTER_HEIGHT_PX)) continue;
    room.take(left, baseline - ASCENT_PX, width + 4, LETTER_HEIGHT_PX);
    return { ...letter, x: left, y: baseline, radians: 0 };
  }
  return null;
}

const SHARES = [0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78];
/** The steepest angle for rotated text. Steeper arrows have horizontal text next to them. */
const STEEPEST = (52 * Math.PI) / 180;
const ASIDE_PX = 8;
/** The maximum number of squares under a label that arrows may cross. It corresponds to one arrow. */
const MOST_PASSED = 5;

interface Line {
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

/** Places text along an arrow, on the side with fewer other arrows. Returns null if the text does not fit. */
export function placeAlong(room: Room, letter: Omit<Letter, "radians" | "x" | "y">, line: Line): Letter | null {
  const { x1, y1, x2, y2 } = line;
  const width = widthOf(letter.text, letter.style);
  const length = Math.hypot(x2 - x1, y2 - y1);
  // Text runs from left to right, in the direction of time.
  const angle = Math.atan2(y2 - y1, x2 - x1);
  const isUpright = Math.abs(angle) > STEEPEST;
  if (!isUpright && length < width + 22) return null;
  const turn = isUpright ? 0 : angle;
  const [asideX, asideY] = isUpright ? [width / 2 + 6, 0] : [-Math.sin(angle) * ASIDE_PX, Math.cos(angle) * ASIDE_PX];
  let [best, least] = [null as { x: number; y: number } | null, MOST_PASSED + 1];
  for (const share of SHARES)
    for (const side of [-1, 1]) {
      const place = { x: x1 + (x2 - x1) * share + side * asideX, y: y1 + (y2 - y1) * share + side * asideY };
      const boxes = boxesUnder(place.x, place.y, width, turn);
      const passed = boxes.reduce((sum, box) => sum + room.passed(...box), 0);
      if (passed < least && boxes.every((box) => room.isFree(...box))) [best, least] = [place, passed];
    }
  if (best === null) return null;
  for (const box of boxesUnder(best.x, best.y, width, turn)) room.take(...box);
  return { ...letter, ...best, radians: turn };
}

/** Returns the boxes covered by a text that is centered at (x, y) and rotated by `angle`. */
function boxesUnder(x: number, y: number, width: number, angle: number): [number, number, number, number][] {
  const size = 9;
  if (angle === 0) return [[x - width / 2, y - 5.5, width, 11]];
  const count = Math.max(1, Math.ceil(width / size));
  return Array.from({ length: count }, (_, index) => {
    const along = -width / 2 + (width * (index + 0.5)) / count;
    return [x + Math.cos(angle) * along - size / 2, y + Math.sin(angle) * along - size / 2, size, size];
  });
}
