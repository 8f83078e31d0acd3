/** Three classes of error, by who must act. Each carries a stable `code` that programs can match on. */
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

/** The caller must act: an argument, an option, a file or a command is not what was expected. */
export class UsageError extends CodedError {}

/** The algorithm is wrong: a state that its author ruled out has been reached. Nothing may go on from here. */
export class InvariantViolation extends CodedError {}

/** The surroundings failed (a disk, a socket, a process): the driver may try again. */
export class EnvironmentError extends CodedError {}

/** "expected X to be Y, got Z": the one form in which Coterie says that a value is not what it should be. */
export function unexpected(what: string, expected: string, got: unknown): string {
  return `expected ${what} to be ${expected}, got ${display(got)}`;
}

function display(value: unknown): string {
  const text = typeof value === "number" ? String(value) : json(value);
  if (text === undefined) return typeof value;
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

/** Undefined for what JSON has no words for: the value is wrong, so it may be anything. */
function json(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
