import { readFile, stat, writeFile } from 'node:fs/promises';
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
    // A directory can be opened, but not read.
    const operation = (error as NodeJS.ErrnoException).code === 'EISDIR' ? 'read' : 'open';
    throw fileError(operation, path, error);
  }
}

/** Writes a configuration file over whatever is there. Throws a ConfigError with the system's reason. */
export async function writeConfigFile(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text);
  } catch (error) {
    throw fileError('open', path, error);
  }
}

function fileError(operation: string, path: string, cause: unknown): ConfigError {
  const { errno, code } = cause as NodeJS.ErrnoException;
  const known = errno === undefined ? String(cause) : getSystemErrorMessage(errno);
  return new ConfigError(`${operation} ${path}: ${code === 'EISDIR' ? 'is a directory' : known}`, { cause });
}
