import { readFile, stat } from 'node:fs/promises';
import { getSystemErrorMessage } from 'node:util';
import { MAX_CONFIG_SIZE } from './decode.ts';
import { ConfigError } from './errors.ts';

/** Reads a configuration file, or a pipe. Throws a ConfigError with the system's reason, as upstream words it. */
export async function readConfigFile(path: string): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size > MAX_CONFIG_SIZE) {
      throw new ConfigError(`${path} has ${size} bytes, at most ${MAX_CONFIG_SIZE} are read`);
    }
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(fileProblem(path, error), { cause: error });
  }
}

function fileProblem(path: string, error: unknown): string {
  const { errno, code } = error as NodeJS.ErrnoException;
  if (code === 'EISDIR') return `read ${path}: is a directory`;
  return `open ${path}: ${errno === undefined ? String(error) : getSystemErrorMessage(errno)}`;
}
