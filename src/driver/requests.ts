/**
 * Commands that are answered. The caller of a node puts an id into the command, the algorithm answers it with `ctx.reply`, then
 * or later; which others it asks meanwhile is its own business. A driver knows of each id what has become of it, and so finds an
 * author's mistake, in the same words everywhere.
 */
import { InvariantViolation, UsageError, unexpected } from "../core/errors.ts";
import type { CommandOf, Protocol, ReplyOf, RequestId, Tagged, Vocabulary } from "../core/protocol.ts";
import { bodyOf, unwrapped } from "../core/wrapping.ts";

/** `past`: given in an earlier life of the node, so that nobody waits for it any more. */
export type RequestStatus = "open" | "answered" | "past";

/** A reply, and to what. */
export interface Answer<V extends Vocabulary> {
  readonly request: RequestId;
  readonly reply: ReplyOf<V>;
}

/** Finds the id in a command, or null if it carries none. Null altogether for a protocol that answers nothing. */
export function requestFinder<V extends Vocabulary>({
  shapes,
}: Protocol<V>): ((command: CommandOf<V>) => RequestId | null) | null {
  const find = (command: Tagged): RequestId | null => {
    const { request } = unwrapped(command);
    return typeof request === "number" ? request : null;
  };
  return Object.keys(shapes.reply ?? {}).length === 0 ? null : find;
}

/** A command that is to be answered, before it has an id. */
export type Unnumbered<C> = C extends { request: RequestId }
  ? Omit<C, "request">
  : C extends { body: infer B }
    ? Omit<C, "body"> & { body: Unnumbered<B> }
    : never;

/** The command with an id, in place of one that it may have. */
export function withRequest(command: Tagged, request: RequestId): Tagged {
  const body = bodyOf(command);
  return { ...command, ...(body === null ? { request } : { body: withRequest(body, request) }) };
}

/** @throws UsageError for an id that the node has had before. */
export function requireFresh(request: RequestId, before: RequestStatus | undefined): void {
  if (before === undefined) return;
  const expected = "one that the node has not been given before";
  throw new UsageError("used-request", unexpected("the id of a request", expected, request));
}

/**
 * Whether somebody waits for this reply.
 * @throws InvariantViolation for a request that nobody has made, and for one that has been answered.
 */
export function isAwaited(request: RequestId, status: RequestStatus | undefined): boolean {
  if (status === undefined)
    throw new InvariantViolation(
      "unknown-request",
      `there is a reply to request ${request}, which nobody has made here`,
    );
  if (status === "answered")
    throw new InvariantViolation("answered-twice", `there is a second reply to request ${request}`);
  return status === "open";
}

/** What has become of requests, as plain data, ascending by id. */
export type Requests = readonly (readonly [RequestId, RequestStatus])[];

export const statusIn = (requests: Requests, request: RequestId): RequestStatus | undefined =>
  requests.find(([id]) => id === request)?.[1];

export const withStatus = (requests: Requests, request: RequestId, status: RequestStatus): Requests =>
  [...requests.filter(([id]) => id !== request), [request, status] as const].sort(([a], [b]) => a - b);

/** What a crash makes of them. */
export const allPast = (requests: Requests): Requests => requests.map(([id]) => [id, "past"]);
