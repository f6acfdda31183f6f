export interface Closable {
  close(): void;
}

/** Notes something that was opened, and returns it. */
export type Keep = <T extends Closable>(opened: T) => T;

/**
 * Opens things that are closed together: `open` passes each to `keep`, and `close` closes them all. When one cannot be
 * opened, those before it are closed.
 */
export async function openTogether<T>(open: (keep: Keep, close: () => void) => T | Promise<T>): Promise<T> {
  const opened: Closable[] = [];
  const close = () => {
    for (const each of opened) each.close();
  };
  try {
    return await open((each) => {
      opened.push(each);
      return each;
    }, close);
  } catch (error) {
    close();
    throw error;
  }
}
