/** Names of locks, elections, channels and shared objects. */
import { UsageError, unexpected } from "../../core/errors.ts";
import { OWN_NAMES } from "../../protocols/service/coordination-service/operations.ts";
import { utf8Bytes } from "./utf8-bytes.ts";

/** The maximum length of a name that a program chooses. */
export const MAX_NAME_BYTES = 128;

/** @throws UsageError if the name is invalid */
export function requireName(name: unknown): string {
  const fault = nameFault(name);
  if (fault === null) return name as string;
  throw new UsageError("bad-name", unexpected("the name", fault, name));
}

function nameFault(name: unknown): string | null {
  if (typeof name !== "string" || name === "") return "a non-empty string";
  if (utf8Bytes(name) > MAX_NAME_BYTES) return `at most ${MAX_NAME_BYTES} bytes long`;
  if (name.startsWith(OWN_NAMES)) return `one that does not begin with ${OWN_NAMES}, which is reserved`;
  return /[\p{Cc}\p{Cs}]/u.test(name) ? "free of control characters" : null;
}
