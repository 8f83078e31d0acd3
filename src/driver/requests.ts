/**
 * Commands that expect a reply. The caller adds an id to the command, and the algorithm answers it with `ctx.reply`,
 * immediately or later. A driver tracks the status of each id, so that every driver reports a mistake in a handler in
 * the same way.
 */
import { InvariantViolation, UsageError, unexpected } from "../core/errors.ts";
import type { CommandOf, Protocol, ReplyOf, RequestId, Tagged, Vocabulary } from "../core/protocol.ts";
import { bodyOf, unwrapped } from "../core/wrapping.ts";

/**
 * The status of a request. `past`: it was received before the node's last crash, so its caller is no longer waiting.
 */
export type RequestStatus = "open" | "answered" | "past";

/** A reply and the request that it answers. */
export interface Answer<V extends Vocabulary> {
  readonly request: RequestId;
  readonly reply: ReplyOf<V>;
}

/**
 * Returns a function that returns a command's id, or null if it has none. Returns null for a protocol that never
 * replies.
 */
export function requestFinder<V extends Vocabulary>({
  shapes,
}: Protocol<V>): ((command: CommandOf<V>) => RequestId | null) | null {
  const find = (command: Tagged): RequestId | null => {
    const { request } = unwrapped(command);
    return typeof request === "number" ? request : null;
  };
  return Object.keys(shapes.reply ?? {}).length === 0 ? null : find;
}

/** A command that expects a reply, before it is given an id. */
export type Unnumbered<C> = C extends { request: RequestId }
  ? Omit<C, "request">
  : C extends { body: infer B }
    ? Omit<C, "body"> & { body: Unnumbered<B> }
    : never;

/** Returns the command with this id, which replaces any id that the command already has. */
export function withRequest(command: Tagged, request: RequestId): Tagged {
  const body = bodyOf(command);
  return { ...command, ...(body === null ? { request } : { body: withRequest(body, request) }) };
}

/**
 * Checks that a request is new.
 * @throws UsageError if the node has already received this id
 */
export function requireFresh(request: RequestId, before: RequestStatus | undefined): void {
  if (before === undefined) return;
  const expected = "one that the node has not received before";
  throw new UsageError("used-request", unexpected("the request id", expected, request));
}

/**
 * Whether a caller is still waiting for this reply.
 * @throws InvariantViolation if no caller made the request, or if it has already been answered
 */
export function isAwaited(request: RequestId, status: RequestStatus | undefined): boolean {
  if (status === undefined) throw new InvariantViolation("unknown-request", `reply to the unknown request ${request}`);
  if (status === "answered") throw new InvariantViolation("answered-twice", `second reply to request ${request}`);
  return status === "open";
}

/** The status of each request as plain data, in ascending order of id. */
export type Requests = readonly (readonly [RequestId, RequestStatus])[];

export const statusIn = (requests: Requests, request: RequestId): RequestStatus | undefined =>
  requests.find(([id]) => id === request)?.[1];

export const withStatus = (requests: Requests, request: RequestId, status: RequestStatus): Requests =>
  [...requests.filter(([id]) => id !== request), [request, status] as const].sort(([a], [b]) => a - b);

/** Returns the statuses after a crash, when all requests are past. */
export const allPast = (requests: Requests): Requests => requests.map(([id]) => [id, "past"]);
