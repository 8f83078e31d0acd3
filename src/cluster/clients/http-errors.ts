/** Converts errors to HTTP responses: a status for programs, and a message with a code for people. */
import { UsageError } from "../../core/errors.ts";
import { CoordinationError } from "../services/coordination-error.ts";

/** Thrown if the credentials are missing (401), or if their role is too low (403). */
export class Forbidden extends Error {
  constructor(
    readonly status: 401 | 403,
    message: string,
  ) {
    super(message);
  }
}

type Status = 400 | 401 | 403 | 404 | 409 | 410 | 413 | 422 | 429 | 500 | 503 | 504 | 507;

type Meanings = Readonly<Record<number, string>>;

const TOO_LARGE = { 413: "The request is too large." };
/** Errors for streams, which last as long as their connection. */
export const streamErrors: Meanings = {
  400: "The request is not valid. The message names the expected and the actual value.",
  401: "A token or a certificate is required.",
  403: "The role does not allow this request.",
  503: "This member cannot answer now. Try another member.",
};
/** Errors for streams whose request has a body. */
export const heldErrors: Meanings = { ...streamErrors, ...TOO_LARGE };
/** Errors for all other requests. */
export const coordinationErrors: Meanings = {
  ...streamErrors,
  ...TOO_LARGE,
  429: "Too many requests are in progress. Retry in a moment.",
  504: "No answer in time. A change may have taken effect, or may still take effect: see `phase`.",
};

/** Additional errors for requests that change state. */
export const changeErrors: Meanings = { 507: "The cluster has reached a limit." };

const statuses: Partial<Record<string, Status>> = {
  "too-large": 413,
  "body-too-long": 413,
  overflow: 422,
  compacted: 410,
  "unknown-member": 404,
  "member-exists": 409,
  "change-under-way": 409,
  "last-voter": 409,
  overloaded: 429,
  "state-full": 507,
  "request-timeout": 504,
  "outcome-unknown": 504,
  "member-left": 503,
  "member-failed": 503,
  "member-removed": 503,
};

/** Returns the response to a request that threw an error. */
export function httpError(error: unknown): { readonly status: Status; readonly body: object } {
  if (error instanceof Forbidden) return { status: error.status, body: { error: error.message, code: "forbidden" } };
  const { message } = error as Error;
  if (error instanceof CoordinationError)
    return { status: statuses[error.code] ?? 503, body: { error: message, code: error.code, phase: error.phase } };
  if (error instanceof UsageError)
    return { status: statuses[error.code] ?? 400, body: { error: message, code: error.code } };
  const { code } = error as { code?: unknown };
  return { status: typeof code === "string" ? 503 : 500, body: { error: message, code: code ?? "failed" } };
}
