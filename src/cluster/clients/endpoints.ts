/**
 * The URLs at which members serve clients. The log contains a map of these URLs, keyed by member id. Clients can read
 * this map but not change it.
 */
import { UsageError, unexpected } from "../../core/errors.ts";
import { CLIENT_PATH } from "./client-words.ts";

/** The maximum number of announced URLs that a client uses. */
export const MAX_ENDPOINTS = 100;
const MAX_ENDPOINT_LENGTH = 300;
const WANTED = 'a URL such as "http://127.0.0.1:7300", with a port from 1 to 65535';

/** @throws UsageError if the endpoint is invalid */
export function socketUrl(endpoint: string, what = "an endpoint of connect()"): string {
  const [, scheme = "", place] = /^(https?|wss?):\/\/([^/?#@\s]+)\/?$/.exec(endpoint) ?? [];
  const url = `${scheme === "https" || scheme === "wss" ? "wss" : "ws"}://${place}${CLIENT_PATH}`;
  if (place === undefined || !isUrl(url)) throw new UsageError("bad-option", unexpected(what, WANTED, endpoint));
  return url;
}

/** Whether a WebSocket can be opened with this URL. */
function isUrl(text: string): boolean {
  try {
    return new URL(text).port !== "0";
  } catch {
    return false;
  }
}

/**
 * Reads a URL from a value in the endpoint map.
 * @param given the endpoints passed to `connect()`. If all of them are secure, insecure announced ones are ignored,
 *   since they would expose the token
 * @returns null if this client does not use the URL
 */
export function endpointTold(value: string, given: readonly string[]): string | null {
  try {
    const endpoint: unknown = JSON.parse(value);
    if (typeof endpoint !== "string" || endpoint.length > MAX_ENDPOINT_LENGTH) return null;
    return isSecure(endpoint) || !given.every(isSecure) ? endpoint : null;
  } catch {
    return null; // The value is not JSON, or not an endpoint.
  }
}

/** @throws UsageError if the endpoint is invalid */
const isSecure = (endpoint: string): boolean => socketUrl(endpoint).startsWith("wss:");
