/** The visitor's mail program, as far as a page can use it: opened `mailto:` URLs. */
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

/** Records opened `mailto:` URLs, and starts no mail program. Call before opening the page. */
export async function catchMail(page: Page): Promise<void> {
  await page.addInitScript(() => {
    window.handedOver = [];
    navigation.addEventListener('navigate', (event) => {
      const { url } = event.destination;
      if (!url.startsWith('mailto:')) return;
      // Browsers open a program only after an action of the visitor.
      window.handedOver.push({ url, allowed: navigator.userActivation.isActive });
      event.preventDefault();
    });
  });
}

/** Returns the messages so far. */
export async function handedOver(page: Page): Promise<Mail[]> {
  const mails = await page.evaluate(() => window.handedOver);
  return mails.filter(({ allowed }) => allowed).map(({ url }) => parse(url));
}

/** RFC 6068: percent-encoding only, `+` is a literal plus sign, lines end in CRLF. */
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
