/* One site's end of the network. All is set by ioctl() from inside the namespace, so that twenty sites are there within
 * some milliseconds and no program has to be started.
 *
 * Every site knows the hardware address of every other one for good: there is no ARP, which would add a round trip now
 * and then, and get lost with the loss that was asked for. IPv6 is off on the device: it would announce itself.
 */
#include "wan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEVICE "wan0"
static const uint32_t NETWORK = 0x0a4d0000; /* 10.77.0.0 */
static const uint32_t NETMASK = 0xffff0000;

static int failed(struct err *err, const char *what)
{
	return err_set(err, ERR_IO, "cannot %s: %s", what, strerror(errno));
}

static struct ifreq request_for(const char *device)
{
	struct ifreq request = {0};
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	return request;
}

static struct sockaddr address_of(uint32_t address)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(address)}};
	struct sockaddr out = {0};
	memcpy(&out, &in, sizeof(in));
	return out;
}

static struct sockaddr hardware_address_of(unsigned site)
{
	struct sockaddr out = {.sa_family = ARPHRD_ETHER};
	unsigned char mac[WAN_MAC_BYTES];
	wan_mac_of(site, mac);
	memcpy(out.sa_data, mac, sizeof(mac));
	return out;
}

static int make_device(struct err *err)
{
	int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tap < 0)
		return failed(err, "open /dev/net/tun");
	struct ifreq request = request_for(DEVICE);
	request.ifr_flags = IFF_TAP | IFF_NO_PI;
	if (ioctl(tap, TUNSETIFF, &request) == 0)
		return tap;
	(void)failed(err, "make the device " DEVICE);
	close(tap);
	return ERR_IO;
}

/* A kernel without IPv6 has no such file. */
static void switch_ipv6_off(void)
{
	int fd = open("/proc/sys/net/ipv6/conf/" DEVICE "/disable_ipv6", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, "1", 1);
	close(fd);
}

static int bring_up(int control, const char *device)
{
	struct ifreq request = request_for(device);
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	return ioctl(control, SIOCSIFFLAGS, &request);
}

static int set_device(int control, unsigned site, struct err *err)
{
	struct ifreq hardware = request_for(DEVICE), mtu = hardware, address = hardware, mask = hardware;
	hardware.ifr_hwaddr = hardware_address_of(site);
	mtu.ifr_mtu = WAN_MTU;
	address.ifr_addr = address_of(NETWORK + site + 1);
	mask.ifr_netmask = address_of(NETMASK);
	if (ioctl(control, SIOCSIFHWADDR, &hardware) != 0 || ioctl(control, SIOCSIFMTU, &mtu) != 0)
		return failed(err, "set the hardware address and MTU of " DEVICE);
	if (ioctl(control, SIOCSIFADDR, &address) != 0 || ioctl(control, SIOCSIFNETMASK, &mask) != 0)
		return failed(err, "set the address of " DEVICE);
	if (bring_up(control, DEVICE) != 0 || bring_up(control, "lo") != 0)
		return failed(err, "bring " DEVICE " and lo up");
	return 0;
}

static int introduce_neighbours(int control, const struct wan_end *end, struct err *err)
{
	for (unsigned site = 0; site < end->sites_count; site++) {
		if (site == end->site)
			continue;
		struct arpreq entry = {.arp_pa = address_of(NETWORK + site + 1),
		                       .arp_ha = hardware_address_of(site),
		                       .arp_flags = ATF_PERM | ATF_COM,
		                       .arp_dev = DEVICE};
		if (ioctl(control, SIOCSARP, &entry) != 0)
			return failed(err, "tell " DEVICE " of the other sites");
	}
	return 0;
}

/* Inside the namespace. */
static int make_end(const struct wan_end *end, struct err *err)
{
	int tap = make_device(err);
	if (tap < 0)
		return tap;
	switch_ipv6_off();
	int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int code = control >= 0 ? set_device(control, end->site, err) : failed(err, "open a socket");
	if (code == 0)
		code = introduce_neighbours(control, end, err);
	if (control >= 0)
		close(control);
	if (code == 0)
		return tap;
	close(tap);
	return code;
}

int wan_tap_open(const struct wan_end *end, struct err *err)
{
	int tap = ERR_IO;
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), there = open(end->netns, O_RDONLY | O_CLOEXEC);
	if (home < 0 || there < 0 || setns(there, CLONE_NEWNET) != 0) {
		(void)failed(err, "enter the namespace");
	} else {
		tap = make_end(end, err);
		if (setns(home, CLONE_NEWNET) != 0) {
			if (tap >= 0)
				close(tap);
			tap = failed(err, "come back from the namespace");
		}
	}
	if (home >= 0)
		close(home);
	if (there >= 0)
		close(there);
	return tap < 0 ? err_context(err, tap, "%s", end->netns) : tap;
}
