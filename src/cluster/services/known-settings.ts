/**
 * Which names a member comes back to after a restart. A setting that stands twice in a row in the journal has been established; one
 * without an algorithm takes the name out.
 */
import { equal } from "../../core/plain.ts";
import type { Journal, Slot } from "../../runtime/journal/journal.ts";
import { type Setting, settingShape } from "./algorithms.ts";

interface Known {
  readonly setting: Setting;
  readonly isEstablished: boolean;
}

const NONE = "";
/** Once so many records, and most of them, are of no use any more, those that are take the place of all. */
const MANY = 1_000;

export class KnownSettings {
  readonly #slot: Slot<Setting> | null;
  readonly #known = new Map<string, Known>();
  #records = 0;

  constructor(journal: Journal | null) {
    this.#slot = journal?.slot("instances", settingShape) ?? null;
    for (const setting of this.#slot?.records ?? []) this.#note(setting);
  }

  get all(): readonly Known[] {
    return [...this.#known.values()];
  }

  note(setting: Setting, isEstablished: boolean): void {
    const known = this.#known.get(keyOf(setting));
    const isNew = known === undefined || !equal(known.setting, setting);
    if (isNew) this.#append(setting);
    if (isEstablished && (isNew || !known.isEstablished)) this.#append(setting);
  }

  /** After a restart nobody runs it again. */
  forget(named: Pick<Setting, "kind" | "name">): void {
    if (this.#known.has(keyOf(named))) this.#append({ ...nameOf(named), algorithm: NONE, options: NONE });
  }

  #append(setting: Setting): void {
    this.#slot?.append(setting);
    this.#note(setting);
    if (this.#records > MANY && this.#records > 4 * this.#known.size) this.#compact(setting);
  }

  #note(setting: Setting): void {
    const key = keyOf(setting);
    const before = this.#known.get(key)?.setting;
    this.#records += 1;
    if (setting.algorithm === NONE) this.#known.delete(key);
    else this.#known.set(key, { setting, isEstablished: before !== undefined && equal(before, setting) });
  }

  /** The last is one of them, or takes a name out that is not there. */
  #compact(last: Setting): void {
    const twice = this.all.flatMap(({ setting, isEstablished }) => (isEstablished ? [setting, setting] : [setting]));
    const left = twice.length === 0 ? [last] : twice;
    this.#slot?.compact(left);
    this.#records = left.length;
  }
}

const keyOf = ({ kind, name }: Pick<Setting, "kind" | "name">): string => `${kind}/${name}`;
const nameOf = ({ kind, name }: Pick<Setting, "kind" | "name">) => ({ kind, name });
