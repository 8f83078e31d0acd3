/** A client that uses members' etcd services in virtual time, without a network protocol. */
import type { Duplex, Method } from "../../src/cluster/etcd/grpc-door.ts";
import { KeyspaceClient } from "../../src/cluster/etcd/keyspace-client.ts";
import type { JoinedMember } from "../../src/cluster/services/joined-member.ts";
import type { World } from "../../src/testing/index.ts";

export const headerOf = (revision: number) => ({ cluster_id: "1", member_id: "1", revision, raft_term: 1 });
const never = new AbortController().signal;

export const asked = {
  call: (method: Method | undefined, request: object, signal = never): Promise<unknown> =>
    method?.handle?.(request, signal) ?? Promise.reject(new Error("there is no such call")),
  stream: (method: Method | undefined, duplex: Duplex<unknown, unknown>): Promise<unknown> =>
    method?.stream?.(duplex) ?? Promise.reject(new Error("there is no such stream")),
};

export async function at(world: World, id: number): Promise<KeyspaceClient> {
  await world.member(id).ready();
  return new KeyspaceClient((world.member(id) as JoinedMember).state.host);
}

/**
 * Creates a stream that sends a test's requests and records the responses. If `isSlow`, its reader does not take any
 * responses until the test lets it.
 */
export function streamOf() {
  const requests: object[] = [];
  let wake = (): void => {};
  const held: (() => void)[] = [];
  const controller = new AbortController();
  const responses: Record<string, unknown>[] = [];
  const stream = {
    isSlow: false,
    isHalfClosed: false,
    /** Why the member ended the stream. */
    failure: null as unknown,
    async *read() {
      while (!controller.signal.aborted) {
        const request = requests.shift();
        if (request !== undefined) yield request;
        else if (stream.isHalfClosed) return;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    },
    ask(request: object): void {
      requests.push({ create_request: null, cancel_request: null, progress_request: null, ...request });
      wake();
    },
    halfClose(): void {
      stream.isHalfClosed = true;
      wake();
    },
    hurry(): void {
      stream.isSlow = false;
      for (const go of held.splice(0)) go();
    },
    end(): void {
      controller.abort();
      wake();
      stream.hurry();
    },
    responses,
  };
  const duplex: Duplex<unknown, unknown> = {
    requests: { [Symbol.asyncIterator]: () => stream.read() },
    signal: controller.signal,
    async send(response) {
      responses.push(response as Record<string, unknown>);
      if (stream.isSlow) await new Promise<void>((resolve) => held.push(resolve));
    },
    fail(error) {
      stream.failure = error;
      stream.end();
    },
  };
  return { stream, duplex };
}

export const create = (key: string, more: object = {}) => ({
  create_request: {
    key,
    range_end: "",
    start_revision: 0,
    progress_notify: false,
    filters: [],
    prev_kv: false,
    watch_id: 0,
    fragment: false,
    ...more,
  },
});

export function valuesIn(responses: readonly Record<string, unknown>[], watch = 0): string[] {
  const own = responses.filter(({ watch_id }) => watch_id === watch);
  const events = own.flatMap(({ events = [] }) => events as { kv: { key: string; value: string } }[]);
  return events.map(({ kv }) => `${kv.key}=${kv.value}`);
}

export async function until(world: World, isSo: () => boolean): Promise<void> {
  while (!isSo()) await world.sleep(10);
}
