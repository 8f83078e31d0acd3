/** How many messages were sent, together and by type. */

/** What parts send, wrapped in their names. */
type Wrapped = { readonly type: string; readonly body?: Wrapped };

export class Tally {
  total = 0;
  /** How many times one node spoke to all others at once. */
  broadcasts = 0;
  private readonly counts = new Map<string, { count: number }>();
  private lastType = "";
  private lastCount = { count: 0 };

  get byType(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.counts].map(([type, { count }]) => [type, count]));
  }

  /** Of what a part of an assembly sent, the part's own type counts. */
  count(message: Wrapped): void {
    this.total += 1;
    let said = message;
    while (said.body !== undefined) said = said.body;
    const { type } = said;
    if (type !== this.lastType) {
      let known = this.counts.get(type);
      if (known === undefined) {
        known = { count: 0 };
        this.counts.set(type, known);
      }
      this.lastType = type;
      this.lastCount = known;
    }
    this.lastCount.count += 1;
  }
}
