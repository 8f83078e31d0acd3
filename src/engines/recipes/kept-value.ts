/** What stands under a key of a map: the value, who wrote it last, and with which session it goes. */
import { refusalOf } from "../../cluster/services/state/refusals.ts";
import { refuse } from "../../protocols/service/coordination-service/operations.ts";
import type { StoreEntry } from "../store.ts";

export interface KeptValue {
  /** 0: it stays. */
  readonly session: number;
  /** Names the write, so that a writer whose answer was lost finds out that it was done. */
  readonly writer: string;
  readonly text: string;
}

const FORM = /^(\d{1,16}) (\S{1,80}) (.*)$/s;

export const keptText = ({ session, writer, text }: KeptValue): string => `${session} ${writer} ${text}`;

export const isKept = ({ value }: Pick<StoreEntry, "value">): boolean => FORM.test(value);

/** @throws UsageError for what others have put there. */
export function keptValue({ key, value }: Pick<StoreEntry, "key" | "value">): KeptValue {
  const [, session, writer, text] = FORM.exec(value) ?? [];
  if (session !== undefined && writer !== undefined && text !== undefined)
    return { session: Number(session), writer, text };
  throw refusalOf(refuse("bad-operation", `what stands at ${key} was not written by Coterie`));
}
