/**
 * OpenTelemetry spans around a member's or client's calls. They wrap the object from outside, so programs without
 * tracing pay nothing.
 */
import type { Election, Member, Mutex } from "./services/api.ts";
import type { Channel } from "./services/channel-api.ts";
import type { ClusterMembers } from "./services/cluster-api.ts";
import type {
  Barrier,
  ReadWriteLock,
  Replicated,
  Semaphore,
  SharedCounter,
  SharedMap,
  SharedQueue,
  StateApi,
} from "./services/state/state-api.ts";

type Attributes = Record<string, string | number>;

/** The part of OpenTelemetry's `Span` that is used here. */
export interface Span {
  /** Sets attributes, such as a grant's fencing token. */
  setAttributes(attributes: Attributes): unknown;
  /** Records an event at the current time. */
  addEvent(name: string, attributes?: Attributes): unknown;
  /** Records the error that ended the call. */
  recordException(error: Error): unknown;
  /** Sets the status of the span. 2 is OpenTelemetry's code for an error. */
  setStatus(status: { code: number; message?: string }): unknown;
  /** Ends the span at the current time. */
  end(): void;
}

/** The part of OpenTelemetry's `Tracer` that is used here. `trace.getTracer("my-service")` returns one. */
export interface Tracer {
  /** Starts a span, makes it active while `work` runs, and returns the result of `work`. */
  startActiveSpan<F extends (span: Span) => unknown>(
    name: string,
    options: { attributes: Attributes },
    work: F,
  ): ReturnType<F>;
}

interface Handles {
  readonly mutex: Mutex;
  readonly election: Election;
  readonly channel: Channel;
  readonly map: SharedMap;
  readonly counter: SharedCounter;
  readonly semaphore: Semaphore;
  readonly readWriteLock: ReadWriteLock;
  readonly barrier: Barrier;
  readonly queue: SharedQueue;
  readonly replicated: Replicated<unknown, unknown, unknown>;
}
type Kind = keyof Handles;

/** The calls that return promises. The compiler requires an entry for each. */
type Waiting<T> = { [K in keyof T]-?: T[K] extends (...given: never[]) => Promise<unknown> ? K : never }[keyof T];
/** Whether each call has a span. Calls that wait for other members have one. */
type Calls<T> = Readonly<Record<Waiting<T>, boolean>>;

const calls: { readonly [K in Kind]: Calls<Handles[K]> } = {
  mutex: { acquire: true, use: true },
  election: { lead: true },
  channel: { send: true, close: false },
  map: { get: true, entry: true, put: true, compareAndSet: true, update: true, delete: true, range: true },
  counter: { get: true, add: true, set: true },
  semaphore: { acquire: true, use: true },
  readWriteLock: { read: true, write: true },
  barrier: { arrive: true },
  queue: { add: true, take: true, size: true },
  replicated: { execute: true, read: true },
};
const callsOfMember: Calls<Omit<Member, "cluster">> = { transaction: true, ready: true, leave: false };
const callsOfCluster: Calls<ClusterMembers> = {
  members: true,
  add: true,
  promote: true,
  remove: true,
  replace: true,
  change: true,
  move: true,
  transfer: true,
  settled: true,
  snapshot: true,
};

type Traced = Readonly<Record<string, boolean>>;

const ERROR = 2;

type Call = (...given: unknown[]) => unknown;

/**
 * Wraps a member or client, adding a span around each call that waits for other members. A span such as
 * `coterie.map.put` has the map's name in `coterie.name`. A grant is recorded as an event with its token in
 * `coterie.token`. An error's code is in `error.type`. Keys and values are not recorded. Calls made inside the work of
 * `use()`, `lead()` or `transaction()` are children of its span.
 *
 * @example
 * import { trace } from "@opentelemetry/api";
 * const member = traced(await join({ id, members, dataDir }), trace.getTracer("my-service"));
 */
export function traced<M extends Omit<StateApi, "replicated">>(member: M, tracer: Tracer): M {
  return around(member, (property, value, self) => {
    if (property === "cluster") return tracedCalls(tracer, "cluster", callsOfCluster, value as object);
    if (typeof value !== "function") return value;
    const call = value as Call;
    if (Object.hasOwn(calls, property)) {
      const kind = property as Kind;
      return (...given: unknown[]) => tracedCalls(tracer, kind, calls[kind], call.apply(self, given) as object);
    }
    return isTraced(callsOfMember, property)
      ? inSpan(tracer, `coterie.${property}`, {}, call.bind(self))
      : call.bind(self);
  });
}

const isTraced = (known: Traced, property: string): boolean =>
  Object.hasOwn(known, property) && known[property] === true;

function tracedCalls(tracer: Tracer, kind: string, known: Traced, handle: object): object {
  const { name } = handle as { name?: string };
  const attributes: Attributes = name === undefined ? {} : { "coterie.name": name };
  return around(handle, (property, value, self) => {
    if (typeof value !== "function") return value;
    const call = (value as Call).bind(self);
    return isTraced(known, property) ? inSpan(tracer, `coterie.${kind}.${property}`, attributes, call) : call;
  });
}

/** Returns a proxy for an object. `see` converts each property. */
function around<T extends object>(target: T, see: (property: string, value: unknown, self: T) => unknown): T {
  return new Proxy(target, {
    get(self, property) {
      const value: unknown = Reflect.get(self, property, self);
      if (typeof property === "string") return see(property, value, self);
      // These are the symbols for iteration and disposal.
      return typeof value === "function" ? (value as Call).bind(self) : value;
    },
  });
}

function inSpan(tracer: Tracer, name: string, attributes: Attributes, call: Call): Call {
  return (...given) =>
    tracer.startActiveSpan(name, { attributes }, async (span) => {
      try {
        const result = await call(
          ...given.map((each) => (typeof each === "function" ? noting(span, each as Call) : each)),
        );
        const token = tokenOf(result);
        if (token !== null) span.addEvent("granted", { "coterie.token": token });
        return result;
      } catch (error) {
        noteError(span, error);
        throw error;
      } finally {
        span.end();
      }
    });
}

/** Records the grant when a call's work begins. */
function noting(span: Span, work: Call): Call {
  return (...given) => {
    const token = tokenOf(given[0]);
    if (token !== null) span.addEvent("granted", { "coterie.token": token });
    return work(...given);
  };
}

function tokenOf(granted: unknown): number | null {
  const { token } = (granted ?? {}) as { token?: unknown };
  return typeof token === "number" ? token : null;
}

function noteError(span: Span, error: unknown): void {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (error instanceof Error) span.recordException(error);
  span.setAttributes({ "error.type": typeof code === "string" ? code : "error" });
  span.setStatus({ code: ERROR, message: String(message ?? error) });
}
