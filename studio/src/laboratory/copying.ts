/** @returns whether it is on the clipboard, which pages over plain HTTP do not have, and others only if they may */
export async function copied(text: string): Promise<boolean> {
  const clipboard: Clipboard | undefined = navigator.clipboard;
  if (clipboard === undefined) return false;
  return clipboard.writeText(text).then(
    () => true,
    () => false,
  );
}
