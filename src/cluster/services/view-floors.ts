/**
 * What must outlive channels whose views are journalled: numbers above those of all lives and views that this member has had in any that
 * it has put away. A channel that is opened begins there, in a view of nobody: so no view and no life comes twice, and a member that
 * has kept the channel finds itself behind, as one that was away.
 */
import type { Tagged } from "../../core/protocol.ts";
import { natural, struct } from "../../core/shape.ts";
import { unwrapped } from "../../core/wrapping.ts";
import type { AnyProtocol } from "../../protocols/index.ts";
import type { Journal, Slot } from "../../runtime/journal/journal.ts";

interface Register {
  readonly incarnation: number;
  readonly view: { readonly number: number };
}

interface Floor {
  readonly incarnation: number;
  readonly view: number;
}

/** Floors differ between members while they put one away; until they agree, others may have come this far. */
const VIEWS_APART = 16;

/** Of a layer that is journalled, or of the one layer in it that is: a protocol declares its fields as they are, and a shape as a struct. */
type RecordShapes = Readonly<Record<string, Fields | { readonly fields: Fields }>>;
interface Fields {
  readonly body: { readonly variants: RecordShapes };
}

export class ViewFloors {
  readonly #slot: Slot<Floor>;
  #floor: Floor;

  constructor(journal: Journal) {
    this.#slot = journal.slot("floor/views", struct({ incarnation: natural, view: natural }));
    this.#floor = this.#slot.records.at(-1) ?? { incarnation: 0, view: 0 };
  }

  /** Into a slot that holds nothing yet. */
  begin({ shapes }: AnyProtocol, slot: Slot<never>): void {
    const { incarnation, view } = this.#floor;
    if ((view === 0 && incarnation === 0) || slot.records.length > 0) return;
    const register = { type: "register", incarnation, promised: 0, accepted: null };
    const empty = { number: view, members: [], cut: [] };
    slot.append(wrapped({ ...register, view: empty }, shapes.record as unknown as RecordShapes) as never);
  }

  /** Before what the slot holds is forgotten. */
  raise(records: readonly unknown[]): void {
    const register = records.length > 0 ? (unwrapped(records.at(-1) as Tagged) as unknown as Register) : null;
    if (register === null) return;
    const reached = Math.max(this.#floor.view, register.view.number + 1); // A member journals a view once it prepares the next.
    const view = (Math.floor(reached / VIEWS_APART) + 1) * VIEWS_APART;
    this.#floor = { incarnation: Math.max(this.#floor.incarnation, register.incarnation), view };
    this.#slot.compact([this.#floor]);
  }
}

/** As the layers around it journal it. */
function wrapped(register: object, shapes: RecordShapes): object {
  if (Object.hasOwn(shapes, "register")) return register;
  const [layer] = Object.entries(shapes);
  if (layer === undefined) return register;
  const [type, fields] = layer;
  const { body } = "fields" in fields ? fields.fields : fields;
  return { type, body: wrapped(register, body.variants) };
}
