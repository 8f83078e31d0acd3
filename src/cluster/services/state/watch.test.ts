/** Watches whose connection moves, or whose replica is given a snapshot, between any two changes. */
import { expect, test } from "vitest";
import type { Change } from "../../../protocols/service/coordination-service/operations.ts";
import type { Listener, Service } from "./service.ts";
import { Watch } from "./watch.ts";

const put = (revision: number, key: string): Change => ({ revision, key, value: `"${key}${revision}"` }) as Change;

/** A service that holds these changes, of which it tells when the test wishes. */
function serviceOf(changes: readonly Change[]) {
  const listeners: Listener[] = [];
  let known = 0;
  const service = {
    revision: 0,
    follow: () => () => {},
    listen: (listener: Listener) => {
      listeners.push(listener);
      return () => {};
    },
    query: ({ after }: { after: number }) => {
      const found = changes.slice(0, known).filter(({ revision }) => revision > after);
      return Promise.resolve({ revision: changes[known - 1]?.revision ?? 0, answer: { changes: found } });
    },
  };
  const say = (event: object): void => {
    for (const listener of listeners) listener(event as never, null);
  };
  return {
    service: service as never as Service,
    /** All up to that one have happened. */
    happen(count: number): void {
      known = count;
    },
    tell: (at: number): void => say({ type: "changed", map: "m", ...changes[at] }),
    restore: (): void => say({ type: "restored", revision: 0 }),
  };
}

const watchOf = (service: Service) =>
  new Watch(
    service,
    { map: "m", after: 0, wants: () => true, signal: undefined },
    ({ revision, key }) => `${key}${revision}`,
  );

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test.each([true, false])(
  "a connection that moves between two changes of one revision loses none and repeats none: read before %s",
  async (isReadBefore) => {
    const { service, happen, tell, restore } = serviceOf([
      put(1, "a"),
      put(2, "a"),
      put(2, "b"),
      put(2, "c"),
      put(3, "a"),
    ]);
    happen(1);
    const watch = watchOf(service);
    expect((await watch.next()).value).toBe("a1");
    const second = watch.next(); // From here on it is told.
    await turn();
    happen(4);
    tell(1);
    if (isReadBefore) expect((await second).value).toBe("a2");
    restore(); // The other two were said on the connection before.
    const seen = [(await second).value, (await watch.next()).value, (await watch.next()).value];
    expect(seen).toEqual(["a2", "b2", "c2"]);
    const last = watch.next();
    await turn();
    happen(5);
    tell(4);
    expect((await last).value).toBe("a3");
  },
);
