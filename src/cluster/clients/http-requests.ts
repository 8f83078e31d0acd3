/**
 * The HTTP requests about elections, locks and shared state: each request's shape, required role and action. openapi.ts
 * describes the same table.
 */
import { z } from "zod";
import { sleep } from "../../runtime/platform/sleep.ts";
import type { ClusterMembers } from "../services/cluster-api.ts";
import { limits } from "../services/state/limits.ts";
import type { SharedState } from "../services/state/shared-state.ts";
import type { Role } from "./client-words.ts";
import { forCallers } from "./own-names.ts";
import { MAX_REQUEST_MS, timeoutMs } from "./request-timeout.ts";
import { jsonValue, performed, transactionShape } from "./transaction-request.ts";

export interface Served {
  readonly state: SharedState;
  readonly members: ClusterMembers;
  readonly member: number;
  readonly cluster: string;
  clients(): number;
}

/** One kind of request. */
export interface HttpRequest {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** The path in OpenAPI notation. `{name}` is a parameter. */
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  readonly role: Role;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** Whether the request's body may be as long as a value in shared state. */
  readonly hasValues?: true;
  readonly answer: z.ZodType;
  /** The media type of the response. Default: JSON. */
  readonly media?: string;
  /** Other statuses, with their meanings. */
  readonly otherwise?: Readonly<Record<number, string>>;
  /**
   * Handles the request.
   * @returns a JSON response, a different status, or bytes if `media` is set
   */
  answered(served: Served, given: Given): Promise<object | Other | AsyncIterable<Uint8Array>>;
}

/**
 * A request, parsed according to its shapes. `query` and `body` also have a `signal`, which is aborted when the caller
 * disconnects, so they can be passed as call options.
 */
export interface Given {
  readonly params: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: parsed by the request's shape, which is defined next to its reader
  readonly query: any;
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly body: any;
}

/** A result that is neither 200 nor an error, such as 404. */
export class Other {
  constructor(
    readonly status: 404 | 409,
    readonly body: object,
  ) {}
}

const whole = z.number("a whole number of 0 or more").int("a whole number").min(0, "a whole number of 0 or more");
const integer = z.number("a whole number").int("a whole number");
/** A number in a URL. */
export const number = z
  .string()
  .regex(/^\d{1,15}$/, "a whole number of 0 or more")
  .transform(Number);
const revision = whole.describe("increases with every change, across all keys and maps");
const value = jsonValue.describe(`JSON data of at most ${limits.valueBytes} bytes`);
const text = z.string("a string");
export const ofQuery = number
  .refine((ms) => ms <= MAX_REQUEST_MS, `milliseconds, at most ${MAX_REQUEST_MS}, which is 10 minutes`)
  .optional()
  .describe("milliseconds; default 10,000");

const entry = z.object({ key: z.string(), value, revision });
export const change = z.union([
  z.object({ type: z.literal("put"), key: z.string(), value, revision }),
  z.object({ type: z.literal("delete"), key: z.string(), revision }),
]);

/** How long a status request waits. If there is a majority, a member that has just joined is up to date by then. */
const STATUS_WAIT_MS = 1_000;

/** All HTTP requests about elections, locks and shared state. */
export const httpRequests: readonly HttpRequest[] = [
  {
    method: "GET",
    path: "/v1/status",
    id: "status",
    summary:
      "The state of the log at this member. leader is null if the member knows of none; revision is null until the member has caught up once.",
    role: "read",
    answer: z.object({
      member: whole,
      cluster: z.string(),
      leader: whole.nullable(),
      term: whole,
      revision: whole.nullable(),
      clients: whole,
    }),
    async answered({ state, member, cluster, clients }) {
      const { timers } = state.host.platform;
      await Promise.race([state.host.current(), sleep(timers, STATUS_WAIT_MS, { ref: false })]);
      const { leader, term, revision } = state.status;
      return { member, cluster, leader, term, revision, clients: clients() };
    },
  },
  {
    method: "GET",
    path: "/v1/maps/{map}/keys/{key}",
    id: "get",
    summary: "Reads a key.",
    role: "read",
    query: z.strictObject({ timeoutMs: ofQuery }),
    answer: entry,
    otherwise: { 404: "The key does not exist." },
    async answered({ state }, { params: { map = "", key = "" }, query }) {
      const found = await state.map(map).entry(key, query);
      return found ?? new Other(404, { error: `the map "${map}" has no key "${key}"`, code: "absent" });
    },
  },
  {
    method: "PUT",
    path: "/v1/maps/{map}/keys/{key}",
    id: "put",
    summary:
      "Writes a key. With ifRevision, writes it only if the key was last written at that revision; 0 means that the key must not exist.",
    role: "write",
    body: z.strictObject({ value, ifRevision: whole.optional(), timeoutMs }, "an object"),
    hasValues: true,
    answer: z.object({ revision }),
    otherwise: { 409: "The key was last written at a different revision." },
    async answered({ state }, { params: { map = "", key = "" }, body: { value: given, ifRevision, ...options } }) {
      const to = state.map(map);
      if (ifRevision === undefined) return { revision: await to.put(key, given, options) };
      const done = await to.compareAndSet(key, ifRevision, given, options);
      return done === null ? changedMeanwhile(key, ifRevision) : { revision: done };
    },
  },
  {
    method: "DELETE",
    path: "/v1/maps/{map}/keys/{key}",
    id: "delete",
    summary: "Deletes a key. With ifRevision, deletes it only if the key was last written at that revision.",
    role: "write",
    query: z.strictObject({ ifRevision: number.optional(), timeoutMs: ofQuery }),
    answer: z.object({ deleted: z.boolean() }),
    async answered({ state }, { params: { map = "", key = "" }, query }) {
      return { deleted: await state.map(map).delete(key, query) };
    },
  },
  {
    method: "GET",
    path: "/v1/maps/{map}",
    id: "range",
    summary: "Returns entries in key order, all as of the same revision.",
    role: "read",
    query: z.strictObject({
      from: text.optional().describe("first key, inclusive"),
      to: text.optional().describe("end of the key range, exclusive"),
      prefix: text.optional(),
      limit: number.optional().describe(`default and maximum: ${limits.range}`),
      timeoutMs: ofQuery,
    }),
    answer: z.object({ entries: z.array(entry), revision, more: z.boolean() }),
    answered: ({ state }, { params: { map = "" }, query }) => state.map(map).range(query),
  },
  {
    method: "POST",
    path: "/v1/transactions",
    id: "transaction",
    summary: "Atomically runs all steps in `then` if every comparison in `if` is true, or else all steps in `else`.",
    role: "write",
    body: transactionShape,
    hasValues: true,
    answer: z.object({
      succeeded: z.boolean(),
      revision,
      results: z.array(z.object({ key: z.string(), value: value.optional(), revision: revision.optional() })),
    }),
    answered: ({ state }, { body }) => performed(forCallers(state.host), body),
  },
  {
    method: "GET",
    path: "/v1/counters/{counter}",
    id: "count",
    summary: "Returns a counter's value.",
    role: "read",
    query: z.strictObject({ timeoutMs: ofQuery }),
    answer: z.object({ value: integer }),
    async answered({ state }, { params: { counter = "" }, query }) {
      return { value: await state.counter(counter).get(query) };
    },
  },
  {
    method: "POST",
    path: "/v1/counters/{counter}",
    id: "add",
    summary: "Adds to a counter or sets its value.",
    role: "write",
    body: z.union(
      [z.strictObject({ add: integer, timeoutMs }), z.strictObject({ set: integer, timeoutMs })],
      "an object with add or set",
    ),
    answer: z.object({ value: integer }),
    otherwise: { 422: "The result would be outside the range of safe integers." },
    async answered({ state }, { params: { counter: name = "" }, body: { add, set, ...options } }) {
      const counter = state.counter(name);
      if (set === undefined) return { value: await counter.add(add, options) };
      await counter.set(set, options);
      return { value: set };
    },
  },
];

const changedMeanwhile = (key: string, ifRevision: number): Other =>
  new Other(409, { error: `"${key}" was not last written at revision ${ifRevision}`, code: "changed" });
