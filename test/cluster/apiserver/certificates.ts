import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority made for one test, with the openssl program. */
export class TestAuthority {
  readonly #directory: string;
  readonly cert: string;
  #serial = 0;

  constructor(name = 'test-ca') {
    this.#directory = mkdtempSync(join(tmpdir(), 'kpt-ca-'));
    this.#openssl([
      'req',
      '-x509',
      ...newKey,
      '-keyout',
      'ca.key',
      '-out',
      'ca.crt',
      '-days',
      '2',
      '-subj',
      `/CN=${name}`,
    ]);
    this.cert = this.#read('ca.crt');
  }

  /** A server certificate for loopback, or for `names` if given. */
  server(names: readonly string[] = ['DNS:localhost', 'IP:127.0.0.1', 'IP:0:0:0:0:0:0:0:1']): KeyPair {
    return this.#issue('/CN=server', `subjectAltName=${names.join(',')}\nextendedKeyUsage=serverAuth\n`);
  }

  /** A client certificate for a user of some groups. */
  client(user: string, groups: readonly string[] = []): KeyPair {
    const subject = [...groups.map((group) => `/O=${group}`), `/CN=${user}`].join('');
    return this.#issue(subject, 'extendedKeyUsage=clientAuth\n');
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #issue(subject: string, extensions: string): KeyPair {
    const id = `leaf-${++this.#serial}`;
    writeFileSync(join(this.#directory, `${id}.ext`), extensions);
    this.#openssl(['req', ...newKey, '-keyout', `${id}.key`, '-out', `${id}.csr`, '-subj', subject]);
    const signing = [
      '-CA',
      'ca.crt',
      '-CAkey',
      'ca.key',
      '-CAcreateserial',
      '-days',
      '2',
      '-extfile',
      `${id}.ext`,
    ];
    this.#openssl(['x509', '-req', '-in', `${id}.csr`, '-out', `${id}.crt`, ...signing]);
    return { cert: this.#read(`${id}.crt`), key: this.#read(`${id}.key`) };
  }

  #openssl(args: readonly string[]): void {
    execFileSync('openssl', args, { cwd: this.#directory, stdio: 'pipe' });
  }

  #read(file: string): string {
    return readFileSync(join(this.#directory, file), 'utf8');
  }
}

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
