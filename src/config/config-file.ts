import { writeFile } from 'node:fs/promises';
import { FileError, readText, stat } from '../lib/file-error.ts';
import { MAX_CONFIG_SIZE } from './decode.ts';
import { ConfigError } from './errors.ts';

/** Reads a configuration file, or a pipe. Rejects with a FileError, or a ConfigError when the file is too large. */
export async function readConfigFile(path: string): Promise<string> {
  const size = await stat(path).then(
    (stats) => stats.size,
    () => 0,
  );
  if (size > MAX_CONFIG_SIZE) {
    throw new ConfigError(`${path} has ${size} bytes, at most ${MAX_CONFIG_SIZE} are read`);
  }
  return readText(path);
}

/** Writes a configuration file, replacing an existing one. Rejects with a FileError. */
export async function writeConfigFile(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text);
  } catch (error) {
    throw new FileError('open', path, error);
  }
}
