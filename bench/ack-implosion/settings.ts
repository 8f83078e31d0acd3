/** What is measured where nobody says otherwise, and what the picture on the page shows. */
export const SIZES: readonly number[] = [3, 4, 7, 16, 31, 64, 128, 256, 512, 1_000];
/** In message times. */
export const PROCESSING = 0.1;
