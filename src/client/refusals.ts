/** Collects the reasons why endpoints have not accepted a client, for the error that the caller gets. */

interface Refusal {
  readonly reason: string;
  /** Whether the reason comes from a member, which makes it more useful than a broken connection. */
  readonly isSaid: boolean;
}

const MAX_REASON_CHARS = 400;
const MAX_REASONS = 4;
const MAX_NAMED = 4;

export class Refusals {
  /** The last refusal from each endpoint. */
  readonly #last = new Map<string, Refusal>();

  /** @param reason a clause */
  note(endpoint: string, reason: string, isSaid: boolean): void {
    this.#last.set(endpoint, { reason: inOneLine(reason), isSaid });
  }

  clear(): void {
    this.#last.clear();
  }

  /**
   * Describes all refusals in a single clause. Reasons from members come first, and a reason shared by several
   * endpoints appears only once.
   * @param awaited endpoints that may still answer
   */
  inWords(endpoints: readonly string[], awaited: readonly string[]): string {
    const all = endpoints.flatMap((endpoint) => {
      const last = this.#last.get(endpoint) ?? (awaited.includes(endpoint) ? unanswered : null);
      return last === null ? [] : [{ endpoint, ...last }];
    });
    const endpointsOf = new Map<string, string[]>();
    for (const { endpoint, reason } of all.toSorted((a, b) => Number(b.isSaid) - Number(a.isSaid)))
      endpointsOf.set(reason, [...(endpointsOf.get(reason) ?? []), endpoint]);
    const [first, ...others] = endpointsOf;
    if (first === undefined) return unanswered.reason;
    if (others.length === 0) return first[0];
    const clauses = [first, ...others].map(([reason, endpoints]) => `${few(endpoints, MAX_NAMED, ", ")}: ${reason}`);
    return few(clauses, MAX_REASONS, "; ");
  }
}

const unanswered: Refusal = { reason: "no answer", isSaid: false };

function few(texts: readonly string[], most: number, separator: string): string {
  const more = texts.length - most;
  const shown = texts.slice(0, most).join(separator);
  return more > 0 ? `${shown}${separator}and ${more} more` : shown;
}

function inOneLine(reason: string): string {
  const text = reason.replaceAll(/\s+/g, " ").trim();
  return text.length > MAX_REASON_CHARS ? `${text.slice(0, MAX_REASON_CHARS - 1)}…` : text;
}
