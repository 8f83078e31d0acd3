import { EnvironmentError } from "../core/errors.ts";
import { formatHostPort, type HostPort } from "./host-port.ts";

/** @param what the purpose of the address, such as `for clients`. Empty for the links between members. */
export function cannotListen(address: HostPort, what: string, cause: unknown): EnvironmentError {
  const why = reason(address, what, cause as NodeJS.ErrnoException);
  const place = [formatHostPort(address), what].filter((each) => each !== "").join(" ");
  return new EnvironmentError("cannot-listen", `cannot listen on ${place}: ${why}`, { cause });
}

function reason({ host }: HostPort, what: string, { code, message }: NodeJS.ErrnoException): string {
  if (code === "EADDRINUSE") return "the address is in use: stop the program that listens there, or choose another";
  if (code !== "EADDRNOTAVAIL") return message;
  const remedy = what === "" ? "set listen, or check the member's id" : "choose another";
  return `this machine has no address ${host}: ${remedy}`;
}
