/** How pictures of a protocol's runs are drawn: what its messages look like, and which of them wait for an answer. */
import { protocolNamed, protocolNames } from "./index.ts";
import { messageInksOf } from "./message-inks.ts";

type ByName<T> = Readonly<Record<string, T>>;

/** Nothing of its own for what is not in the registry. */
export function drawnAs(protocol: string): { readonly inks: ByName<number>; readonly withheld: ByName<string> } {
  const withheld = protocolNames.includes(protocol) ? protocolNamed(protocol).presentation.withheld : {};
  return { inks: messageInksOf(protocol), withheld };
}
