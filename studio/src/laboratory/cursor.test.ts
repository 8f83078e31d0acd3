import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";

/** An element within one of this name. */
class Focused {
  constructor(readonly within: string) {}

  closest(names: string): this | null {
    return names.split(", ").includes(this.within) ? this : null;
  }
}

let Cursor: typeof import("./cursor.svelte.ts").Cursor;
let cursor: InstanceType<typeof Cursor>;

beforeAll(async () => {
  vi.stubGlobal("$state", <T>(value: T): T => value); // Nothing follows the state here.
  vi.stubGlobal("HTMLElement", Focused);
  ({ Cursor } = await import("./cursor.svelte.ts"));
});
afterAll(() => void vi.unstubAllGlobals());
beforeEach(() => {
  cursor = new Cursor();
  cursor.begin(10, 5);
  return () => cursor.pause();
});

/** @returns whether the cursor took the key */
function press(key: string, within: string): boolean {
  const preventDefault = vi.fn<() => void>();
  cursor.onkey({ key, target: new Focused(within), preventDefault } as unknown as KeyboardEvent);
  return preventDefault.mock.calls.length > 0;
}

describe.each(["body", "button", "summary", "a"])("where %s has the focus", (within) => {
  test("the cursor goes by arrows, Home and End", () => {
    const steps = ["ArrowRight", "ArrowLeft", "End", "Home"].map((key) => press(key, within) && cursor.step);
    expect(steps).toEqual([6, 5, 9, -1]);
  });

  test("Space plays, unless it presses what has the focus", () => {
    expect(press(" ", within)).toBe(within === "body");
    expect(cursor.plays).toBe(within === "body");
  });
});

test.each(["input", "select", "textarea"])("where %s has the focus, it has all keys", (within) => {
  for (const key of ["ArrowRight", "ArrowLeft", "End", "Home", " "]) expect(press(key, within)).toBe(false);
  expect(cursor.step).toBe(5);
});

test("the play goes on no sooner than the state at the step is shown, however late that is", () => {
  vi.useFakeTimers();
  try {
    let shown = 5;
    cursor.isShown = () => shown === cursor.step;
    cursor.toggle();
    vi.advanceTimersByTime(600);
    expect(cursor.step).toBe(6);
    vi.advanceTimersByTime(6_000);
    expect(cursor.step).toBe(6);
    shown = 6;
    vi.advanceTimersByTime(600);
    expect(cursor.step).toBe(7);
  } finally {
    vi.useRealTimers();
  }
});
