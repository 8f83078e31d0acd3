/**
 * Commands that expect a reply. The caller of a node puts an id into the command, and the algorithm answers it with
 * `ctx.reply`, immediately or later. A driver tracks the status of each id, so that every driver reports an author's mistake in
 * the same way.
 */
import { InvariantViolation, UsageError, unexpected } from "../core/errors.ts";
import type { CommandOf, Protocol, ReplyOf, RequestId, Tagged, Vocabulary } from "../core/protocol.ts";
import { bodyOf, unwrapped } from "../core/wrapping.ts";

/** `past`: received before the node's last crash, so its caller no longer waits. */
export type RequestStatus = "open" | "answered" | "past";

/** A reply and the request it answers. */
export interface Answer<V extends Vocabulary> {
  readonly request: RequestId;
  readonly reply: ReplyOf<V>;
}

/** Returns a function that finds the id in a command, or null if it has none. Null instead for a protocol that never replies. */
export function requestFinder<V extends Vocabulary>({
  shapes,
}: Protocol<V>): ((command: CommandOf<V>) => RequestId | null) | null {
  const find = (command: Tagged): RequestId | null => {
    const { request } = unwrapped(command);
    return typeof request === "number" ? request : null;
  };
  return Object.keys(shapes.reply ?? {}).length === 0 ? null : find;
}

/** A command that expects a reply, before it has an id. */
export type Unnumbered<C> = C extends { request: RequestId }
  ? Omit<C, "request">
  : C extends { body: infer B }
    ? Omit<C, "body"> & { body: Unnumbered<B> }
    : never;

/** The command with this id, which replaces any id it already has. */
export function withRequest(command: Tagged, request: RequestId): Tagged {
  const body = bodyOf(command);
  return { ...command, ...(body === null ? { request } : { body: withRequest(body, request) }) };
}

/** @throws UsageError if the node has received this id before */
export function requireFresh(request: RequestId, before: RequestStatus | undefined): void {
  if (before === undefined) return;
  const expected = "one that the node has not received before";
  throw new UsageError("used-request", unexpected("the id of a request", expected, request));
}

/**
 * Returns whether a caller still waits for this reply.
 * @throws InvariantViolation if no caller made the request, or if it was already answered
 */
export function isAwaited(request: RequestId, status: RequestStatus | undefined): boolean {
  if (status === undefined) throw new InvariantViolation("unknown-request", `reply to the unknown request ${request}`);
  if (status === "answered") throw new InvariantViolation("answered-twice", `second reply to request ${request}`);
  return status === "open";
}

/** The status of each request, as plain data, ascending by id. */
export type Requests = readonly (readonly [RequestId, RequestStatus])[];

export const statusIn = (requests: Requests, request: RequestId): RequestStatus | undefined =>
  requests.find(([id]) => id === request)?.[1];

export const withStatus = (requests: Requests, request: RequestId, status: RequestStatus): Requests =>
  [...requests.filter(([id]) => id !== request), [request, status] as const].sort(([a], [b]) => a - b);

/** The statuses after a crash: all requests are past. */
export const allPast = (requests: Requests): Requests => requests.map(([id]) => [id, "past"]);
