/** What keeps this process busy with the network: to be equal before and after what a test opened. */
import { expect, vi } from "vitest";

const PATIENCE = { timeout: 20_000, interval: 5 };

const busy = (): string[] => process.getActiveResourcesInfo().filter((name) => /^(TCP|TLS|Timeout|Connect)/.test(name));

/** What is open besides sockets, once those of earlier tests have closed. */
export const handlesAtRest = (): Promise<string[]> =>
  vi.waitFor(() => {
    const handles = busy().sort();
    expect(handles.filter((name) => name !== "Timeout")).toEqual([]);
    return handles;
  }, PATIENCE);

/** Resolves once no more than `before` is open. */
export const expectNothingLeft = (before: readonly string[]): Promise<void> =>
  vi.waitFor(() => expect(busy().sort()).toEqual(before), PATIENCE);
