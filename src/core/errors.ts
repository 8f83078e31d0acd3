/**
 * The base of the three error classes, which differ in who must resolve the error. `code` is stable, so programs can
 * match on it.
 */
class CodedError extends Error {
  constructor(
    readonly code: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The caller made a mistake: an argument, an option, a file or a command is wrong. */
export class UsageError extends CodedError {}

/** The algorithm is wrong: it reached a state that its author ruled out. The run must stop here. */
export class InvariantViolation extends CodedError {}

/** The environment failed (a disk, a socket, a process). The driver may retry. */
export class EnvironmentError extends CodedError {}

/** Formats the message that Coterie uses for every invalid value: "expected X to be Y, got Z". */
export function unexpected(what: string, expected: string, got: unknown): string {
  return `expected ${what} to be ${expected}, got ${display(got)}`;
}

function display(value: unknown): string {
  const text = typeof value === "number" ? String(value) : json(value);
  if (text === undefined) return typeof value;
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

/** Returns the value as JSON, or undefined if JSON cannot represent it. An invalid value can have any type. */
function json(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
