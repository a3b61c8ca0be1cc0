/** The visitor's mail program, as far as a page can tell: a `mailto:` URL that is opened. */
import type { Page } from '@playwright/test';

declare global {
  interface Window {
    handedOver: { url: string; allowed: boolean }[];
  }
}

export interface Mail {
  to: string;
  subject: string;
  body: string;
}

/** Call before the page is opened. No program of the machine that runs the tests is started. */
export async function catchMail(page: Page): Promise<void> {
  await page.addInitScript(() => {
    window.handedOver = [];
    navigation.addEventListener('navigate', (event) => {
      const { url } = event.destination;
      if (!url.startsWith('mailto:')) return;
      // Browsers open a program only in answer to something that the visitor did.
      window.handedOver.push({ url, allowed: navigator.userActivation.isActive });
      event.preventDefault();
    });
  });
}

/** What was handed over so far. */
export async function handedOver(page: Page): Promise<Mail[]> {
  const mails = await page.evaluate(() => window.handedOver);
  return mails.filter(({ allowed }) => allowed).map(({ url }) => parse(url));
}

/** RFC 6068: percent-encoding only, `+` stands for itself, lines end in CRLF. */
function parse(url: string): Mail {
  const [to = '', query = ''] = url.slice('mailto:'.length).split('?');
  const headers = new Map(
    query.split('&').map((pair) => {
      const [name = '', ...value] = pair.split('=');
      return [name.toLowerCase(), decodeURIComponent(value.join('='))];
    }),
  );
  return {
    to: decodeURIComponent(to),
    subject: headers.get('subject') ?? '',
    body: headers.get('body') ?? '',
  };
}
