import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";

/** An element inside an element of this name. */
class Focused {
  constructor(readonly within: string) {}

  closest(names: string): this | null {
    return names.split(", ").includes(this.within) ? this : null;
  }
}

let Cursor: typeof import("./cursor.svelte.ts").Cursor;
let cursor: InstanceType<typeof Cursor>;

beforeAll(async () => {
  vi.stubGlobal("$state", <T>(value: T): T => value); // In this test, the state is not reactive.
  vi.stubGlobal("HTMLElement", Focused);
  ({ Cursor } = await import("./cursor.svelte.ts"));
});
afterAll(() => void vi.unstubAllGlobals());
beforeEach(() => {
  cursor = new Cursor();
  cursor.begin(10, 5);
  return () => cursor.pause();
});

/** Presses a key inside an element. @returns whether the cursor handled it */
function press(key: string, within: string): boolean {
  const preventDefault = vi.fn<() => void>();
  cursor.onkey({ key, target: new Focused(within), preventDefault } as unknown as KeyboardEvent);
  return preventDefault.mock.calls.length > 0;
}

describe.each(["body", "button", "summary", "a"])("when %s has the focus", (within) => {
  test("moves the cursor by arrows, Home and End", () => {
    const steps = ["ArrowRight", "ArrowLeft", "End", "Home"].map((key) => press(key, within) && cursor.step);
    expect(steps).toEqual([6, 5, 9, -1]);
  });

  test("plays on Space, unless Space activates the focused element", () => {
    expect(press(" ", within)).toBe(within === "body");
    expect(cursor.plays).toBe(within === "body");
  });
});

test.each(["input", "select", "textarea"])("leaves all keys to %s when it has the focus", (within) => {
  for (const key of ["ArrowRight", "ArrowLeft", "End", "Home", " "]) expect(press(key, within)).toBe(false);
  expect(cursor.step).toBe(5);
});

test("continues play only after the state at the step is shown, no matter how late", () => {
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
