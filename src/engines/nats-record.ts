/**
 * The encoding of a stream's records: a line of JSON, followed by text if the record is part of a snapshot. Records
 * that are unreadable or in another release's format are ignored.
 */
import type { LogRequest } from "./nats-state.ts";

/** A record in the stream. */
export type LogRecord =
  | { readonly type: "request"; readonly id: string; readonly request: LogRequest }
  /** Part `index` of the `count` parts that make up the state after record `at`. */
  | {
      readonly type: "part";
      readonly at: number;
      readonly index: number;
      readonly count: number;
      readonly text: string;
    };

const FORM = 1;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Encodes a record. */
export function writtenRecord(record: LogRecord): Uint8Array {
  if (record.type === "request") return encoder.encode(JSON.stringify({ form: FORM, ...record }));
  const { text, ...part } = record;
  return encoder.encode(`${JSON.stringify({ form: FORM, ...part })}\n${text}`);
}

/** Decodes a record. Returns null if it has a different format. */
export function readRecord(bytes: Uint8Array): LogRecord | null {
  const all = decoder.decode(bytes);
  const end = all.indexOf("\n");
  const found = parsedObject(end === -1 ? all : all.slice(0, end));
  if (found === null || found.form !== FORM) return null;
  if (found.type === "request") {
    const request = requestOf(found.request);
    return typeof found.id === "string" && request !== null ? { type: "request", id: found.id, request } : null;
  }
  const { at, index, count } = found;
  const isPart = found.type === "part" && isNatural(at) && isNatural(index) && isNatural(count) && index < count;
  return isPart ? { type: "part", at, index, count, text: all.slice(end + 1) } : null;
}

function requestOf(value: unknown): LogRequest | null {
  if (typeof value !== "object" || value === null) return null;
  const request = value as Record<string, unknown>;
  switch (request.type) {
    case "commit":
      return all(request.checks, isCheck) && all(request.writes, isWrite) && isFlag(request.isRelease)
        ? (value as LogRequest)
        : null;
    case "open":
      return isNatural(request.ttlMs) ? (value as LogRequest) : null;
    case "keep":
    case "end":
      return isNatural(request.session) ? (value as LogRequest) : null;
    case "living":
      return all(request.sessions, isNatural) ? (value as LogRequest) : null;
    default:
      return null;
  }
}

function parsedObject(text: string): Record<string, unknown> | null {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

const all = (value: unknown, holds: (each: unknown) => boolean): boolean => Array.isArray(value) && value.every(holds);
const isNatural = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isFlag = (value: unknown): boolean => value === undefined || typeof value === "boolean";
const isKeyed = (value: unknown): value is { key: string } & Record<string, unknown> =>
  typeof value === "object" && value !== null && typeof (value as { key?: unknown }).key === "string";
const isCheck = (value: unknown): boolean => isKeyed(value) && isNatural(value.revision);
const isWrite = (value: unknown): boolean =>
  isKeyed(value) && (value.value === null || typeof value.value === "string");
