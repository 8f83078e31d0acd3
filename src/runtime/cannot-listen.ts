import { EnvironmentError } from "../core/errors.ts";
import { formatHostPort, type HostPort } from "./host-port.ts";

/** @param what is served there, such as `for clients`; empty: what members say to each other. */
export function cannotListen(address: HostPort, what: string, cause: unknown): EnvironmentError {
  const { code, message } = cause as NodeJS.ErrnoException;
  const why = code === "EADDRINUSE" ? "it is taken: stop what listens there or choose another" : message;
  const place = [formatHostPort(address), what].filter((each) => each !== "").join(" ");
  return new EnvironmentError("cannot-listen", `cannot listen on ${place}: ${why}`, { cause });
}
