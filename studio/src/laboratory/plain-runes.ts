/** Runes for tests in Node: states that nothing follows. */
import { vi } from "vitest";

/** Before what uses them is imported. */
export function plainRunes(): void {
  const held = <T>(value: T): T => value;
  vi.stubGlobal("$state", Object.assign(held, { raw: held }));
}
