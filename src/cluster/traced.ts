/**
 * OpenTelemetry spans around the calls of a member or client. They wrap the object: its code does not depend on them, so
 * programs without tracing pay nothing.
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
  setAttributes(attributes: Attributes): unknown;
  addEvent(name: string, attributes?: Attributes): unknown;
  recordException(error: Error): unknown;
  /** 2 is OpenTelemetry's status code for an error. */
  setStatus(status: { code: number; message?: string }): unknown;
  end(): void;
}

/** The part of OpenTelemetry's `Tracer` that is used here; `trace.getTracer("my-service")` returns one. */
export interface Tracer {
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

/** The calls that return promises; the compiler requires an entry for each. */
type Waiting<T> = { [K in keyof T]-?: T[K] extends (...given: never[]) => Promise<unknown> ? K : never }[keyof T];
/** Whether each call has a span: those that wait for other members have. */
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
 * Wraps a member or client with a span around each call that waits for other members. The span of a call such as
 * `coterie.map.put` has the map's name as `coterie.name`. A grant is an event with its token as `coterie.token`; an error's
 * code is `error.type`. Keys and values are not recorded. Calls within the work of `use()`, `lead()` or `transaction()` are
 * children of its span.
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

/** A proxy of an object: `see` converts each of its properties. */
function around<T extends object>(target: T, see: (property: string, value: unknown, self: T) => unknown): T {
  return new Proxy(target, {
    get(self, property) {
      const value: unknown = Reflect.get(self, property, self);
      if (typeof property === "string") return see(property, value, self);
      return typeof value === "function" ? (value as Call).bind(self) : value; // Symbols of iteration and disposal.
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

/** Records the grant when the work of a call begins. */
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
