/**
 * Checks watches on a scripted service: their end, future start revisions, many unread changes, and changes of
 * connection or snapshots between any two changes.
 */
import { expect, test } from "vitest";
import type { Change } from "../../../protocols/service/coordination-service/operations.ts";
import { realPlatform } from "../../../runtime/platform/real.ts";
import { type CoordinationCode, CoordinationError } from "../coordination-error.ts";
import { limits } from "./limits.ts";
import type { Listener, Service } from "./service.ts";
import { Watch, type Watched } from "./watch.ts";

const put = (revision: number, key: string): Change => ({ revision, key, value: `"${key}${revision}"` }) as Change;

/** Creates a service that reports these changes on request of the test. @param most the changes in one answer */
function serviceOf(changes: readonly Change[], most = Number.POSITIVE_INFINITY) {
  const listeners: Listener[] = [];
  let known = 0;
  let queries = 0;
  let answers = true;
  let refusals = 0;
  const service = {
    platform: realPlatform,
    revision: 0,
    closed: null,
    follow: () => () => {},
    listen: (listener: Listener) => {
      listeners.push(listener);
      return () => {};
    },
    query: ({ after }: { after: number }) => {
      queries += 1;
      if (refusals > 0) {
        refusals -= 1;
        return Promise.reject(new CoordinationError("overloaded", "never-sent", "too much is under way"));
      }
      if (!answers) return new Promise(() => {});
      const found = changes.slice(0, known).filter(({ revision }) => revision > after);
      const answer = { changes: found.slice(0, most), isMore: found.length > most };
      return Promise.resolve({ revision: changes[known - 1]?.revision ?? 0, answer });
    },
  };
  const say = (event: object): void => {
    for (const listener of listeners) listener(event as never, null);
  };
  return {
    service: service as never as Service,
    get queries() {
      return queries;
    },
    /** Makes the service stop answering. */
    silence(): void {
      answers = false;
    },
    /** Temporarily refuses this many queries. */
    overload(count: number): void {
      refusals = count;
    },
    close: (code: CoordinationCode): void =>
      say({ type: "closed", reason: new CoordinationError(code, "lost", "it is over") }),
    /** Makes the first `count` changes happen. */
    happen(count: number): void {
      known = count;
    },
    tell: (at: number): void => say({ type: "changed", map: "m", ...changes[at] }),
    restore: (): void => say({ type: "restored", revision: 0 }),
  };
}

const watchOf = (service: Service, watched: Partial<Watched> = {}) =>
  new Watch(
    service,
    { map: "m", after: 0, wants: () => true, signal: undefined, ...watched },
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
    const second = watch.next(); // The watch is live from here on.
    await turn();
    happen(4);
    tell(1);
    if (isReadBefore) expect((await second).value).toBe("a2");
    restore(); // The other two were sent on the earlier connection.
    const seen = [(await second).value, (await watch.next()).value, (await watch.next()).value];
    expect(seen).toEqual(["a2", "b2", "c2"]);
    const last = watch.next();
    await turn();
    happen(5);
    tell(4);
    expect((await last).value).toBe("a3");
  },
);

test("a watch reads many changes with several queries, and then receives the next ones", async () => {
  const changes = [1, 2, 3, 4, 5, 6].map((revision) => put(revision, "a"));
  const it = serviceOf(changes, 2);
  it.happen(5);
  const watch = watchOf(it.service);
  const seen: unknown[] = [];
  for (let times = 0; times < 5; times++) seen.push((await watch.next()).value);
  expect([seen, it.queries]).toEqual([["a1", "a2", "a3", "a4", "a5"], 3]);
  const last = watch.next();
  await turn();
  it.happen(6);
  it.tell(5);
  expect([(await last).value, it.queries]).toEqual(["a6", 3]);
});

test("a watch after a future revision reports nothing before it", async () => {
  const changes = [1, 2, 3, 4].map((revision) => put(revision, "a"));
  const { service, happen, tell } = serviceOf(changes);
  happen(1);
  const first = watchOf(service, { after: 3 }).next();
  await turn();
  for (const at of [1, 2, 3]) {
    happen(at + 1);
    tell(at);
  }
  expect((await first).value).toBe("a4");
});

const ways: readonly (readonly [string, (it: ReturnType<typeof serviceOf>, watch: AsyncIterator<string>) => void])[] = [
  ["its signal is aborted", () => {}],
  ["it is returned", (_it, watch) => void watch.return?.()],
  ["the member leaves", ({ close }) => close("member-left")],
];

test.each(ways)("a watch with an unanswered query ends when %s", async (_way, end) => {
  const it = serviceOf([put(1, "a")]);
  it.silence();
  const ending = new AbortController();
  const watch = watchOf(it.service, { signal: ending.signal });
  const next = watch.next();
  await turn();
  if (end.length === 0) ending.abort();
  end(it, watch);
  expect(await next).toEqual({ done: true, value: undefined });
  expect(await watch.next()).toEqual({ done: true, value: undefined });
});

test.each(["asking", "told"])(
  "a watch that is %s when its member fails throws the reason, and nothing else",
  async (how) => {
    const it = serviceOf([put(1, "a")]);
    if (how === "asking") it.silence();
    const watch = watchOf(it.service);
    const next = watch.next();
    await turn();
    it.close("member-failed");
    await expect(next).rejects.toMatchObject({ code: "member-failed", phase: "never-sent" });
  },
);

test("the backlog of a slow watch is bounded by its length, and later changes are read", async () => {
  const long = "x".repeat(limits.backlogChars / 4);
  const changes = Array.from({ length: 12 }, (_, at) => ({ ...put(at + 1, "a"), value: long }));
  const it = serviceOf(changes);
  const watch = watchOf(it.service);
  const seen = [watch.next()];
  await turn();
  for (const at of changes.keys()) {
    it.happen(at + 1);
    it.tell(at);
  }
  expect(it.queries).toBe(1);
  for (let read = 1; read < changes.length; read++) seen.push(watch.next());
  expect((await Promise.all(seen)).map(({ value }) => value as string)).toEqual(
    changes.map(({ revision }) => `a${revision}`),
  );
  expect(it.queries).toBe(2);
});

test("long changes that a slow watch does not want do not fill its backlog", async () => {
  const changes = Array.from({ length: 12 }, (_, at) => put(at + 1, at % 2 === 0 ? "a" : "b"));
  for (const change of changes) if (change.key === "b") change.value = "x".repeat(limits.backlogChars / 2);
  const it = serviceOf(changes);
  const watch = watchOf(it.service, { wants: (key) => key === "a" });
  const first = watch.next();
  await turn();
  for (const at of changes.keys()) it.tell(at);
  const seen = [await first];
  while (seen.length < 6) seen.push(await watch.next());
  expect(seen.map(({ value }) => value as string)).toEqual(["a1", "a3", "a5", "a7", "a9", "a11"]);
  expect(it.queries).toBe(1);
});

test("a slow watch whose backlog fills between two changes of one revision loses none and repeats none", async () => {
  const long = "x".repeat(limits.backlogChars / 2);
  const changes = ["a", "b", "c", "d"].map((key) => ({ ...put(1, key), value: long }));
  const it = serviceOf(changes);
  const watch = watchOf(it.service);
  const first = watch.next();
  await turn();
  it.happen(4);
  it.tell(0);
  expect((await first).value).toBe("a1");
  for (const at of [1, 2, 3]) it.tell(at);
  const seen = [await watch.next(), await watch.next(), await watch.next()];
  expect(seen.map(({ value }) => value as string)).toEqual(["b1", "c1", "d1"]);
});

test("a watch refused under overload is retried, and loses and repeats no changes", async () => {
  const it = serviceOf([put(1, "a"), put(2, "a"), put(3, "a")]);
  it.happen(1);
  const watch = watchOf(it.service);
  expect((await watch.next()).value).toBe("a1");
  it.overload(2);
  const second = watch.next();
  it.restore();
  it.happen(2);
  expect((await second).value).toBe("a2");
  expect(it.queries).toBe(4);
  it.happen(3);
  it.tell(2);
  expect((await watch.next()).value).toBe("a3");
});

test("a watch refused temporarily, whose signal is aborted, is not retried", async () => {
  const it = serviceOf([put(1, "a")]);
  it.overload(Number.POSITIVE_INFINITY);
  const ending = new AbortController();
  const next = watchOf(it.service, { signal: ending.signal }).next();
  await turn();
  ending.abort();
  expect(await next).toEqual({ done: true, value: undefined });
  expect(it.queries).toBe(1);
});

test("a watch whose signal is aborted reports no waiting changes", async () => {
  const it = serviceOf([put(1, "a"), put(2, "a")]);
  it.happen(2);
  const ending = new AbortController();
  const watch = watchOf(it.service, { signal: ending.signal });
  expect((await watch.next()).value).toBe("a1");
  ending.abort();
  expect(await watch.next()).toEqual({ done: true, value: undefined });
});

test("waiting changes can be read after the member leaves", async () => {
  const it = serviceOf([put(1, "a"), put(2, "a")]);
  it.happen(2);
  const watch = watchOf(it.service);
  expect((await watch.next()).value).toBe("a1");
  it.close("member-left");
  expect((await watch.next()).value).toBe("a2");
  expect(await watch.next()).toEqual({ done: true, value: undefined });
});
