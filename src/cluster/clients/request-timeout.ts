/** The `timeoutMs` field of an HTTP request. */
import { z } from "zod";

/** The maximum `timeoutMs` in a request. */
export const MAX_REQUEST_MS = 600_000;

/** The field in a request body. */
export const timeoutMs = z
  .number("a number of milliseconds")
  .positive("a number of milliseconds above 0")
  .max(MAX_REQUEST_MS, `a number of milliseconds of at most ${MAX_REQUEST_MS}, which is 10 minutes`)
  .optional();
