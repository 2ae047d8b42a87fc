// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A NOR flash in memory that the kernel was told to leave alone, for power cuts: the emulator keeps
 * that memory in a file, so that what was stored there outlives the machine.
 *
 * As on a real chip programming only clears bits, erasing raises those of a whole block, and both
 * can be torn: with `cut` set to N the machine stops somewhere inside the N-th operation from then
 * on. Behind the flash lies the mail, plain memory, through which the driver of the tests and the
 * machine talk to each other: what is written there is there at once.
 */
#include <linux/io.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/mtd/mtd.h>
#include <linux/mutex.h>
#include <linux/reboot.h>

#define BLOCK_BYTES 65536

static unsigned long start, size, mail;
module_param(start, ulong, 0444);
module_param(size, ulong, 0444);
module_param(mail, ulong, 0444);
MODULE_PARM_DESC(start, "physical address");
MODULE_PARM_DESC(size, "bytes of flash, may be 0");
MODULE_PARM_DESC(mail, "bytes behind it for mail");

static unsigned int cut, dice = 1, operations, misuses;
module_param(cut, uint, 0644);
module_param(dice, uint, 0644);
module_param(operations, uint, 0444);
module_param(misuses, uint, 0444);
MODULE_PARM_DESC(cut, "operations until the power goes, the last one torn; 0: never");
MODULE_PARM_DESC(dice, "seed of where an operation is torn, and what it leaves");
MODULE_PARM_DESC(operations, "programmed or erased so often");
MODULE_PARM_DESC(misuses, "so many bytes were to get a bit that only erasing raises");

static u8 *memory;
static struct mtd_info flash, box;
/* A chip does one thing at a time. */
static DEFINE_MUTEX(busy);

static u32 roll(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 17;
	dice ^= dice << 5;
	return dice;
}

/* Is this the operation in which the power goes? */
static bool is_last(void)
{
	operations++;
	return cut && --cut == 0;
}

static void power_off(void)
{
	local_irq_disable();
	emergency_restart();
	for (;;)
		cpu_relax();
}

static int flash_write(struct mtd_info *mtd, loff_t to, size_t len, size_t *done,
		       const u_char *from)
{
	u8 *cell = memory + to;
	bool last;
	size_t i, end = len;

	mutex_lock(&busy);
	last = is_last();
	if (last && len)
		end = roll() % len;
	for (i = 0; i < end; i++) {
		if (from[i] & ~cell[i])
			misuses++;
		cell[i] &= from[i];
	}
	if (last) {
		if (len)
			cell[end] &= from[end] | roll();
		power_off();
	}
	mutex_unlock(&busy);
	*done = len;
	return 0;
}

static void erase_block(u8 *block)
{
	bool last = is_last();
	size_t i, end = last ? roll() % (2 * BLOCK_BYTES) : 2 * BLOCK_BYTES;

	/* Some of the bits have risen when the power goes early; later, some bytes still have not. */
	if (last)
		for (i = 0; i < BLOCK_BYTES && i < end; i++)
			block[i] |= roll() & roll();
	if (end > BLOCK_BYTES)
		memset(block, 0xff, end - BLOCK_BYTES);
	if (last)
		power_off();
}

static int flash_erase(struct mtd_info *mtd, struct erase_info *what)
{
	u64 at;

	mutex_lock(&busy);
	for (at = what->addr; at < what->addr + what->len; at += BLOCK_BYTES)
		erase_block(memory + at);
	mutex_unlock(&busy);
	return 0;
}

static int flash_read(struct mtd_info *mtd, loff_t from, size_t len, size_t *done, u_char *to)
{
	mutex_lock(&busy);
	memcpy(to, memory + from, len);
	mutex_unlock(&busy);
	*done = len;
	return 0;
}

static int box_read(struct mtd_info *mtd, loff_t from, size_t len, size_t *done, u_char *to)
{
	memcpy(to, memory + size + from, len);
	*done = len;
	return 0;
}

static int box_write(struct mtd_info *mtd, loff_t to, size_t len, size_t *done, const u_char *from)
{
	memcpy(memory + size + to, from, len);
	*done = len;
	return 0;
}

static int __init flash_init(void)
{
	int error = 0;

	memory = memremap(start, size + mail, MEMREMAP_WB);
	if (!memory)
		return -ENOMEM;
	box.name = "mail";
	box.type = MTD_RAM;
	box.flags = MTD_CAP_RAM;
	box.size = mail;
	box.erasesize = BLOCK_BYTES;
	box.writesize = 1;
	box._read = box_read;
	box._write = box_write;
	box.owner = THIS_MODULE;
	flash.name = "flash";
	flash.type = MTD_NORFLASH;
	flash.flags = MTD_CAP_NORFLASH;
	flash.size = size;
	flash.erasesize = BLOCK_BYTES;
	flash.writesize = 1;
	flash.writebufsize = 64;
	flash._read = flash_read;
	flash._write = flash_write;
	flash._erase = flash_erase;
	flash.owner = THIS_MODULE;
	/* The mail is always mtd0. */
	error = mtd_device_register(&box, NULL, 0);
	if (!error && size)
		error = mtd_device_register(&flash, NULL, 0);
	return error;
}
module_init(flash_init);

MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("a flash in memory, for power cuts");
