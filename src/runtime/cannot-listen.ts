import { EnvironmentError } from "../core/errors.ts";
import { formatHostPort, type HostPort } from "./host-port.ts";

/** @param what names the purpose of the address, such as `for clients`. Empty for the links between members. */
export function cannotListen(address: HostPort, what: string, cause: unknown): EnvironmentError {
  const { code, message } = cause as NodeJS.ErrnoException;
  const why =
    code === "EADDRINUSE" ? "the address is in use: stop the program that listens there, or choose another" : message;
  const place = [formatHostPort(address), what].filter((each) => each !== "").join(" ");
  return new EnvironmentError("cannot-listen", `cannot listen on ${place}: ${why}`, { cause });
}
