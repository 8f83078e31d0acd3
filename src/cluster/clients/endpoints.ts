/**
 * Where members serve clients: URLs, and the map of the log in which each member keeps its own, under its id. Clients read it, and
 * change nothing in it.
 */
import { UsageError, unexpected } from "../../core/errors.ts";
import { CLIENT_PATH } from "./client-words.ts";

/** Of those that members have told, a client looks at so many. */
export const MAX_ENDPOINTS = 100;
const MAX_ENDPOINT_LENGTH = 300;
const WANTED = 'a URL such as "http://127.0.0.1:7300", with a port from 1 to 65535';

/** @throws UsageError for what is no endpoint. */
export function socketUrl(endpoint: string, what = "an endpoint of connect()"): string {
  const [, scheme = "", place] = /^(https?|wss?):\/\/([^/?#@\s]+)\/?$/.exec(endpoint) ?? [];
  const url = `${scheme === "https" || scheme === "wss" ? "wss" : "ws"}://${place}${CLIENT_PATH}`;
  if (place === undefined || !isUrl(url)) throw new UsageError("bad-option", unexpected(what, WANTED, endpoint));
  return url;
}

/** Else a WebSocket could not be made of it. */
function isUrl(text: string): boolean {
  try {
    return new URL(text).port !== "0";
  } catch {
    return false;
  }
}

/**
 * What a member has told, as the text of a value in the map.
 * @param given by the caller of `connect()`. Who was given secure ones alone takes no others: a token would be open to all on the way.
 * @returns null for what this client does not use.
 */
export function endpointTold(value: string, given: readonly string[]): string | null {
  try {
    const endpoint: unknown = JSON.parse(value);
    if (typeof endpoint !== "string" || endpoint.length > MAX_ENDPOINT_LENGTH) return null;
    return isSecure(endpoint) || !given.every(isSecure) ? endpoint : null;
  } catch {
    return null; // No JSON, or no endpoint.
  }
}

/** @throws UsageError for what is no endpoint. */
const isSecure = (endpoint: string): boolean => socketUrl(endpoint).startsWith("wss:");
