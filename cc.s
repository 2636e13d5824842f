	.file	"<string>"
	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
.LCPI0_0:
	.quad	8
	.quad	9
	.quad	10
	.quad	11
	.quad	12
	.quad	13
	.quad	14
	.quad	15
.LCPI0_1:
	.quad	0
	.quad	1
	.quad	2
	.quad	3
	.quad	4
	.quad	5
	.quad	6
	.quad	7
	.section	.rodata.cst8,"aM",@progbits,8
	.p2align	3, 0x0
.LCPI0_2:
	.quad	16
.LCPI0_3:
	.quad	32
.LCPI0_4:
	.quad	48
.LCPI0_5:
	.quad	64
.LCPI0_6:
	.quad	8
	.section	.rodata.cst32,"aM",@progbits,32
	.p2align	5, 0x0
.LCPI0_7:
	.short	0
	.short	4
	.short	8
	.short	12
	.short	16
	.short	20
	.short	24
	.short	28
	.short	32
	.short	36
	.short	40
	.short	44
	.short	48
	.short	52
	.short	56
	.short	60
.LCPI0_8:
	.short	1
	.short	5
	.short	9
	.short	13
	.short	17
	.short	21
	.short	25
	.short	29
	.short	33
	.short	37
	.short	41
	.short	45
	.short	49
	.short	53
	.short	57
	.short	61
.LCPI0_9:
	.short	2
	.short	6
	.short	10
	.short	14
	.short	18
	.short	22
	.short	26
	.short	30
	.short	34
	.short	38
	.short	42
	.short	46
	.short	50
	.short	54
	.short	58
	.short	62
.LCPI0_10:
	.short	3
	.short	7
	.short	11
	.short	15
	.short	19
	.short	23
	.short	27
	.short	31
	.short	35
	.short	39
	.short	43
	.short	47
	.short	51
	.short	55
	.short	59
	.short	63
	.section	.ltext,"axl",@progbits
	.globl	_ZN7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE
	.p2align	4
	.type	_ZN7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE,@function
_ZN7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	pushq	%r15
	.cfi_def_cfa_offset 24
	pushq	%r14
	.cfi_def_cfa_offset 32
	pushq	%r13
	.cfi_def_cfa_offset 40
	pushq	%r12
	.cfi_def_cfa_offset 48
	pushq	%rbx
	.cfi_def_cfa_offset 56
	subq	$744, %rsp
	.cfi_def_cfa_offset 800
	.cfi_offset %rbx, -56
	.cfi_offset %r12, -48
	.cfi_offset %r13, -40
	.cfi_offset %r14, -32
	.cfi_offset %r15, -24
	.cfi_offset %rbp, -16
	cmpq	$0, 1016(%rsp)
	movq	%rdi, 136(%rsp)
	jle	.LBB0_95
	movq	960(%rsp), %r13
	movq	912(%rsp), %r11
	movq	1024(%rsp), %r15
	movq	1008(%rsp), %r10
	movq	952(%rsp), %r14
	xorl	%r9d, %r9d
	movq	%r13, %rax
	sarq	$63, %rax
	andnq	%r13, %rax, %rax
	addq	%rax, %rax
	movq	%rax, 72(%rsp)
	testq	%r11, %r11
	cmovgq	%r11, %r9
	jle	.LBB0_76
	movabsq	$9223372036854775800, %rbx
	movq	%r15, %rax
	imulq	1016(%rsp), %rax
	leaq	-1(%r15), %rdi
	leaq	2(%r14), %rsi
	leaq	4(%r14), %rdx
	leaq	(%r14,%r15,8), %rcx
	vpbroadcastq	%r13, %zmm19
	movq	$0, 48(%rsp)
	leaq	7(%r15,%rbx), %r8
	leaq	-120(%rbx), %rbp
	andq	%r13, %rbx
	vmovdqu64	%zmm19, 672(%rsp)
	movq	%rbx, 240(%rsp)
	andq	%r13, %rbp
	imulq	%r11, %r8
	movq	%rbp, 40(%rsp)
	leaq	(%r14,%r8,2), %r8
	leaq	(%r10,%rax,4), %rax
	leaq	(%r8,%r9,2), %r12
	movl	%r13d, %r8d
	andl	$3, %r8d
	movq	%r8, 24(%rsp)
	movabsq	$4611686018427387840, %r8
	leaq	63(%r8), %rbx
	movq	%r12, 192(%rsp)
	movq	%rbx, 184(%rsp)
	movq	%r9, %rbx
	andq	%r8, %rbx
	orq	$56, %r8
	andq	%r9, %r8
	movq	%rbx, 56(%rsp)
	movl	%r9d, %ebx
	andl	$63, %ebx
	movq	%r8, 112(%rsp)
	leaq	-8(%r14,%r15,8), %r8
	movq	%rbx, 152(%rsp)
	movl	%r9d, %ebx
	andl	$7, %ebx
	movq	%rbx, 200(%rsp)
	movq	%r9, %rbx
	movq	%rbx, 80(%rsp)
	cmpq	%r14, %r8
	setb	%r8b
	shrq	$61, %rdi
	leaq	-6(%r14,%r15,8), %rdi
	setne	%r9b
	cmpq	%rsi, %rdi
	leaq	-4(%r14,%r15,8), %rdi
	setb	%sil
	orb	%r8b, %sil
	cmpq	%rdx, %rdi
	leaq	-2(%r14,%r15,8), %rdx
	leaq	6(%r14), %r8
	setb	%dil
	cmpq	%r8, %rdx
	leaq	(%rbx,%rbx), %rdx
	setb	%r8b
	orb	%r9b, %dil
	orb	%sil, %dil
	movabsq	$9223372036854775680, %rsi
	orb	%r8b, %dil
	cmpq	%rcx, %r10
	setb	%cl
	cmpq	%rax, %r14
	setb	%al
	andb	%cl, %al
	movq	%r15, %rcx
	shrq	$61, %rcx
	setne	%cl
	andq	%rdx, %rsi
	movabsq	$4611686018427387872, %rdx
	orb	%al, %cl
	movq	%rsi, 224(%rsp)
	movabsq	$.LCPI0_7, %rsi
	orb	%dil, %cl
	leaq	(%r15,%r15), %rdi
	vmovdqa64	(%rsi), %ymm20
	movabsq	$.LCPI0_9, %rsi
	andq	%rdi, %rdx
	vmovdqa64	(%rsi), %ymm22
	movb	%cl, 14(%rsp)
	movabsq	$.LCPI0_1, %rsi
	movabsq	$2305843009213693951, %rcx
	movq	%rdx, 120(%rsp)
	movabsq	$.LCPI0_8, %rdx
	vmovdqa64	(%rsi), %zmm24
	leaq	-15(%rcx), %rsi
	addq	$-3, %rcx
	vmovdqa64	(%rdx), %ymm21
	movabsq	$.LCPI0_10, %rdx
	andq	%r15, %rcx
	andq	%r15, %rsi
	vmovdqa64	(%rdx), %ymm23
	movabsq	$.LCPI0_6, %rdx
	movq	%rcx, 128(%rsp)
	movq	%r15, %rcx
	andq	$-8, %rcx
	movq	%rsi, 88(%rsp)
	movq	872(%rsp), %rsi
	vpbroadcastq	(%rdx), %zmm25
	movq	%r15, %rdx
	andq	$-32, %rdx
	movq	%rcx, 160(%rsp)
	movq	800(%rsp), %rcx
	movq	%rdx, 144(%rsp)
	leaq	(,%r15,4), %rdx
	movq	%rdx, 96(%rsp)
	leaq	(%r14,%r13,2), %rdx
	vmovdqu64	%zmm20, 608(%rsp)
	leaq	3(%rsi), %rax
	vmovdqu64	%zmm22, 480(%rsp)
	movq	%rdx, 64(%rsp)
	leaq	(%r12,%r13,2), %rdx
	movabsq	$.LCPI0_2, %r12
	movq	%rax, 248(%rsp)
	vmovdqu64	%zmm24, 352(%rsp)
	vmovdqu64	%zmm21, 544(%rsp)
	movq	%rdx, 176(%rsp)
	leaq	(%rcx,%r13), %rdx
	vmovdqu64	%zmm23, 416(%rsp)
	movq	%rdx, 280(%rsp)
	leaq	(%rsi,%r13), %rdx
	vmovdqu64	%zmm25, 288(%rsp)
	movq	%rdx, 272(%rsp)
	leaq	(%r10,%r15,4), %rdx
	movq	%rdx, 168(%rsp)
	leaq	(%r11,%r11), %rdx
	movq	%rdx, 264(%rsp)
	leaq	96(%rcx), %rdx
	addq	$3, %rcx
	movq	%rdx, 216(%rsp)
	leaq	96(%rsi), %rdx
	movq	%rcx, 256(%rsp)
	movq	%rdx, 208(%rsp)
	xorl	%edx, %edx
	jmp	.LBB0_5
	.p2align	4
.LBB0_3:
	movq	32(%rsp), %rdx
	movq	16(%rsp), %r10
.LBB0_4:
	movq	48(%rsp), %rcx
	addq	96(%rsp), %r10
	incq	%rcx
	movq	%rcx, 48(%rsp)
	cmpq	1016(%rsp), %rcx
	je	.LBB0_96
.LBB0_5:
	movq	%r10, 16(%rsp)
	movq	%rdx, 32(%rsp)
	testq	%r13, %r13
	jle	.LBB0_28
	movq	72(%rsp), %rdx
	movabsq	$memset, %rax
	movq	%r14, %rdi
	xorl	%esi, %esi
	vzeroupper
	callq	*%rax
	movq	48(%rsp), %rax
	vmovdqu64	288(%rsp), %zmm25
	vmovdqu64	352(%rsp), %zmm24
	vmovdqu64	416(%rsp), %zmm23
	vmovdqu64	480(%rsp), %zmm22
	vmovdqu64	544(%rsp), %zmm21
	vmovdqu64	608(%rsp), %zmm20
	vmovdqu64	672(%rsp), %zmm19
	movq	80(%rsp), %rcx
	imulq	912(%rsp), %rax
	jmp	.LBB0_8
	.p2align	4
.LBB0_7:
	incq	%rax
	decq	%rcx
	jle	.LBB0_28
.LBB0_8:
	movq	%rax, %rdx
	sarq	$63, %rdx
	movq	800(%rsp), %rdi
	movq	872(%rsp), %r8
	movq	%rdx, %rsi
	andq	808(%rsp), %rsi
	andq	880(%rsp), %rdx
	addq	%rax, %rsi
	addq	%rax, %rdx
	imulq	816(%rsp), %rsi
	imulq	888(%rsp), %rdx
	addq	%rsi, %rdi
	addq	%rdx, %r8
	cmpq	$8, %r13
	jae	.LBB0_16
.LBB0_9:
	xorl	%r10d, %r10d
.LBB0_10:
	cmpq	$0, 24(%rsp)
	movq	%r10, %r9
	je	.LBB0_13
	movq	24(%rsp), %r11
	movq	%r10, %r9
	.p2align	4
.LBB0_12:
	movzbl	(%rdi,%r9), %r12d
	movzbl	(%r8,%r9), %ebx
	cmpb	%r12b, %bl
	movl	%r12d, %ebp
	cmoval	%ebx, %ebp
	cmovbl	%ebx, %r12d
	movzbl	%bpl, %ebx
	addw	(%r14,%r9,2), %bx
	movzbl	%r12b, %ebp
	subl	%ebp, %ebx
	decq	%r11
	movw	%bx, (%r14,%r9,2)
	leaq	1(%r9), %r9
	jne	.LBB0_12
.LBB0_13:
	movq	40(%rsp), %rbp
	subq	%r13, %r10
	movabsq	$.LCPI0_2, %r12
	cmpq	$-4, %r10
	ja	.LBB0_7
	addq	256(%rsp), %rsi
	addq	248(%rsp), %rdx
	.p2align	4
.LBB0_15:
	movzbl	-3(%rsi,%r9), %edi
	movzbl	-3(%rdx,%r9), %r8d
	cmpb	%dil, %r8b
	movl	%edi, %r10d
	cmoval	%r8d, %r10d
	cmovbl	%r8d, %edi
	movzbl	%r10b, %r8d
	addw	(%r14,%r9,2), %r8w
	movzbl	%dil, %edi
	subl	%edi, %r8d
	movw	%r8w, (%r14,%r9,2)
	movzbl	-2(%rsi,%r9), %edi
	movzbl	-2(%rdx,%r9), %r8d
	cmpb	%dil, %r8b
	movl	%edi, %r10d
	cmoval	%r8d, %r10d
	cmovbl	%r8d, %edi
	movzbl	%r10b, %r8d
	addw	2(%r14,%r9,2), %r8w
	movzbl	%dil, %edi
	subl	%edi, %r8d
	movw	%r8w, 2(%r14,%r9,2)
	movzbl	-1(%rsi,%r9), %edi
	movzbl	-1(%rdx,%r9), %r8d
	cmpb	%dil, %r8b
	movl	%edi, %r10d
	cmoval	%r8d, %r10d
	cmovbl	%r8d, %edi
	movzbl	%r10b, %r8d
	addw	4(%r14,%r9,2), %r8w
	movzbl	%dil, %edi
	subl	%edi, %r8d
	movw	%r8w, 4(%r14,%r9,2)
	movzbl	(%rsi,%r9), %edi
	movzbl	(%rdx,%r9), %r8d
	cmpb	%dil, %r8b
	movl	%edi, %r10d
	cmoval	%r8d, %r10d
	cmovbl	%r8d, %edi
	movzbl	%r10b, %r8d
	addw	6(%r14,%r9,2), %r8w
	movzbl	%dil, %edi
	subl	%edi, %r8d
	movw	%r8w, 6(%r14,%r9,2)
	addq	$4, %r9
	cmpq	%r9, %r13
	jne	.LBB0_15
	jmp	.LBB0_7
	.p2align	4
.LBB0_16:
	movq	280(%rsp), %r9
	movq	272(%rsp), %r10
	movq	64(%rsp), %rbx
	addq	%rsi, %r9
	addq	%rdx, %r10
	cmpq	%r9, %r14
	setb	%r11b
	cmpq	%rbx, %rdi
	setb	%r12b
	cmpq	%r10, %r14
	setb	%r9b
	cmpq	%rbx, %r8
	setb	%r10b
	testb	%r12b, %r11b
	jne	.LBB0_9
	andb	%r10b, %r9b
	movl	$0, %r10d
	movabsq	$.LCPI0_2, %r12
	jne	.LBB0_10
	cmpq	$128, %r13
	jae	.LBB0_21
	xorl	%r9d, %r9d
	jmp	.LBB0_25
.LBB0_21:
	movq	216(%rsp), %r9
	movq	208(%rsp), %r10
	xorl	%r11d, %r11d
	addq	%rsi, %r9
	addq	%rdx, %r10
	.p2align	4
.LBB0_22:
	vmovdqu	-64(%r9,%r11), %ymm1
	vmovdqu	-64(%r10,%r11), %ymm5
	vmovdqu	-96(%r9,%r11), %ymm0
	vmovdqu	-96(%r10,%r11), %ymm4
	vmovdqu	-32(%r9,%r11), %ymm2
	vmovdqu	-32(%r10,%r11), %ymm6
	vmovdqu	(%r9,%r11), %ymm3
	vmovdqu	(%r10,%r11), %ymm7
	vpmaxub	%ymm1, %ymm5, %ymm9
	vpminub	%ymm1, %ymm5, %ymm1
	vpmaxub	%ymm0, %ymm4, %ymm8
	vpmaxub	%ymm2, %ymm6, %ymm10
	vpmaxub	%ymm3, %ymm7, %ymm11
	vpminub	%ymm0, %ymm4, %ymm0
	vpminub	%ymm2, %ymm6, %ymm2
	vpminub	%ymm3, %ymm7, %ymm3
	vpmovzxbw	%ymm9, %zmm5
	vpaddw	64(%r14,%r11,2), %zmm5, %zmm5
	vpmovzxbw	%ymm1, %zmm1
	vpmovzxbw	%ymm8, %zmm4
	vpmovzxbw	%ymm10, %zmm6
	vpmovzxbw	%ymm11, %zmm7
	vpaddw	(%r14,%r11,2), %zmm4, %zmm4
	vpaddw	128(%r14,%r11,2), %zmm6, %zmm6
	vpmovzxbw	%ymm0, %zmm0
	vpmovzxbw	%ymm2, %zmm2
	vpmovzxbw	%ymm3, %zmm3
	vpsubw	%zmm1, %zmm5, %zmm1
	vpaddw	192(%r14,%r11,2), %zmm7, %zmm5
	vpsubw	%zmm0, %zmm4, %zmm0
	vpsubw	%zmm2, %zmm6, %zmm2
	vmovdqu64	%zmm0, (%r14,%r11,2)
	vmovdqu64	%zmm1, 64(%r14,%r11,2)
	vmovdqu64	%zmm2, 128(%r14,%r11,2)
	vpsubw	%zmm3, %zmm5, %zmm3
	vmovdqu64	%zmm3, 192(%r14,%r11,2)
	subq	$-128, %r11
	cmpq	%r11, %rbp
	jne	.LBB0_22
	cmpq	%rbp, %r13
	je	.LBB0_7
	movq	%rbp, %r9
	movq	%rbp, %r10
	testb	$120, %r13b
	je	.LBB0_10
.LBB0_25:
	movq	240(%rsp), %r10
	.p2align	4
.LBB0_26:
	vmovq	(%rdi,%r9), %xmm0
	vmovq	(%r8,%r9), %xmm1
	vpmaxub	%xmm0, %xmm1, %xmm2
	vpminub	%xmm0, %xmm1, %xmm0
	vpmovzxbw	%xmm2, %xmm1
	vpaddw	(%r14,%r9,2), %xmm1, %xmm1
	vpmovzxbw	%xmm0, %xmm0
	vpsubw	%xmm0, %xmm1, %xmm0
	vmovdqu	%xmm0, (%r14,%r9,2)
	addq	$8, %r9
	cmpq	%r9, %r10
	jne	.LBB0_26
	cmpq	%r10, %r13
	je	.LBB0_7
	jmp	.LBB0_10
	.p2align	4
.LBB0_28:
	cmpq	$4, 912(%rsp)
	jne	.LBB0_32
	testq	%r15, %r15
	jle	.LBB0_3
	cmpq	$4, %r15
	setb	%al
	orb	14(%rsp), %al
	testb	$1, %al
	je	.LBB0_50
	xorl	%ecx, %ecx
	jmp	.LBB0_58
	.p2align	4
.LBB0_32:
	testq	%r15, %r15
	jle	.LBB0_3
	movq	96(%rsp), %rcx
	movq	48(%rsp), %rsi
	movq	1008(%rsp), %r9
	movq	184(%rsp), %rdx
	imulq	%rsi, %rcx
	leaq	(%r9,%rcx), %rax
	addq	168(%rsp), %rcx
	cmpq	%rdx, 912(%rsp)
	seta	%dl
	imulq	%r15, %rsi
	cmpq	176(%rsp), %rax
	leaq	(%r9,%rsi,4), %r11
	setb	%dil
	cmpq	%rcx, 64(%rsp)
	movq	%r11, 104(%rsp)
	setb	%r8b
	andb	%dil, %r8b
	cmpq	192(%rsp), %rax
	setb	%sil
	cmpq	%rcx, %r14
	setb	%al
	andb	%sil, %al
	xorl	%esi, %esi
	orb	%dl, %al
	movq	%r14, %rdx
	orb	%r8b, %al
	movb	%al, 15(%rsp)
	jmp	.LBB0_35
	.p2align	4
.LBB0_34:
	addq	264(%rsp), %rdx
	incq	%rsi
	cmpq	%rsi, %r15
	je	.LBB0_63
.LBB0_35:
	movq	912(%rsp), %rax
	movq	%rsi, %rdi
	movl	$0, (%r11,%rsi,4)
	cmpq	$8, %rax
	setl	%r9b
	orb	15(%rsp), %r9b
	imulq	%rax, %rdi
	xorl	%r8d, %r8d
	testb	$1, %r9b
	je	.LBB0_37
	movq	80(%rsp), %r9
	incq	%r9
	jmp	.LBB0_48
	.p2align	4
.LBB0_37:
	cmpq	$64, %rax
	jge	.LBB0_39
	xorl	%r9d, %r9d
	xorl	%r8d, %r8d
	movq	%rdi, %rcx
	jmp	.LBB0_44
	.p2align	4
.LBB0_39:
	movq	56(%rsp), %rcx
	vpbroadcastq	%rdi, %zmm0
	movabsq	$.LCPI0_3, %r15
	movabsq	$.LCPI0_5, %rbp
	xorl	%r9d, %r9d
	vpxor	%xmm3, %xmm3, %xmm3
	vpxor	%xmm4, %xmm4, %xmm4
	vpxor	%xmm5, %xmm5, %xmm5
	vpaddq	%zmm24, %zmm0, %zmm2
	leaq	(%rdi,%rcx), %rax
	movq	224(%rsp), %rcx
	movq	%rax, 232(%rsp)
	movabsq	$.LCPI0_0, %rax
	vpaddq	(%rax), %zmm0, %zmm1
	movabsq	$.LCPI0_4, %rax
	vpxor	%xmm0, %xmm0, %xmm0
	.p2align	4
.LBB0_40:
	vpsraq	$63, %zmm1, %zmm8
	vpsraq	$63, %zmm2, %zmm9
	vpbroadcastq	(%r15), %zmm6
	vpbroadcastq	(%r12), %zmm7
	vpandq	%zmm19, %zmm8, %zmm8
	vpandq	%zmm19, %zmm9, %zmm9
	vmovq	%xmm8, %r8
	vpextrq	$1, %xmm8, %r11
	vextracti128	$1, %ymm8, %xmm10
	vpextrq	$1, %xmm9, %r10
	vextracti32x4	$3, %zmm9, %xmm14
	leaq	(%rdx,%r8,2), %r8
	leaq	(%rdx,%r11,2), %r11
	leaq	(%rdx,%r10,2), %r10
	movzwl	16(%r9,%r8), %r8d
	vpaddq	%zmm7, %zmm2, %zmm13
	vpaddq	%zmm7, %zmm1, %zmm7
	vpsraq	$63, %zmm7, %zmm7
	vmovd	%r8d, %xmm11
	vpinsrw	$1, 18(%r9,%r11), %xmm11, %xmm11
	vmovq	%xmm10, %r8
	vpextrq	$1, %xmm10, %r11
	vextracti32x4	$2, %zmm8, %xmm10
	vextracti32x4	$3, %zmm8, %xmm8
	leaq	(%rdx,%r8,2), %r8
	leaq	(%rdx,%r11,2), %r11
	vpinsrw	$2, 20(%r9,%r8), %xmm11, %xmm11
	vmovq	%xmm10, %r8
	leaq	(%rdx,%r8,2), %r8
	vpinsrw	$3, 22(%r9,%r11), %xmm11, %xmm11
	vmovq	%xmm9, %r11
	leaq	(%rdx,%r11,2), %r11
	movzwl	(%r9,%r11), %r11d
	vpinsrw	$4, 24(%r9,%r8), %xmm11, %xmm11
	vpextrq	$1, %xmm10, %r8
	vextracti128	$1, %ymm9, %xmm10
	leaq	(%rdx,%r8,2), %r8
	vmovd	%r11d, %xmm12
	vpinsrw	$1, 2(%r9,%r10), %xmm12, %xmm12
	vpinsrw	$5, 26(%r9,%r8), %xmm11, %xmm11
	vmovq	%xmm10, %r8
	vpextrq	$1, %xmm10, %r11
	vextracti32x4	$2, %zmm9, %xmm10
	leaq	(%rdx,%r8,2), %r8
	vmovq	%xmm10, %r10
	vpextrq	$1, %xmm10, %rbx
	vpaddq	%zmm6, %zmm2, %zmm10
	leaq	(%rdx,%r10,2), %r10
	vpsraq	$63, %zmm10, %zmm10
	vpinsrw	$2, 4(%r9,%r8), %xmm12, %xmm12
	leaq	(%rdx,%r11,2), %r8
	vmovq	%xmm8, %r11
	leaq	(%rdx,%r11,2), %r11
	vpinsrw	$6, 28(%r9,%r11), %xmm11, %xmm15
	vmovq	%xmm14, %r11
	vpinsrw	$3, 6(%r9,%r8), %xmm12, %xmm9
	vpaddq	%zmm6, %zmm1, %zmm12
	leaq	(%rdx,%r11,2), %r11
	vpextrq	$1, %xmm14, %r8
	leaq	(%rdx,%r8,2), %r8
	vpsraq	$63, %zmm12, %zmm12
	vpandq	%zmm19, %zmm12, %zmm12
	vpinsrw	$4, 8(%r9,%r10), %xmm9, %xmm6
	leaq	(%rdx,%rbx,2), %r10
	vpandq	%zmm19, %zmm7, %zmm9
	vextracti128	$1, %ymm9, %xmm11
	vextracti32x4	$2, %zmm9, %xmm14
	vpinsrw	$5, 10(%r9,%r10), %xmm6, %xmm6
	vmovq	%xmm9, %r10
	leaq	(%rdx,%r10,2), %r10
	movzwl	48(%r9,%r10), %r10d
	vmovd	%r10d, %xmm7
	vpextrq	$1, %xmm9, %r10
	vextracti32x4	$3, %zmm9, %xmm9
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$1, 50(%r9,%r10), %xmm7, %xmm7
	vpextrq	$1, %xmm8, %r10
	vpsraq	$63, %zmm13, %zmm8
	vpinsrw	$6, 12(%r9,%r11), %xmm6, %xmm13
	vmovq	%xmm11, %r11
	leaq	(%rdx,%r11,2), %r11
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$2, 52(%r9,%r11), %xmm7, %xmm6
	vpextrq	$1, %xmm11, %r11
	vpandq	%zmm19, %zmm8, %zmm7
	vpbroadcastq	(%rax), %zmm8
	leaq	(%rdx,%r11,2), %r11
	vextracti32x4	$1, %ymm7, %xmm17
	vpinsrw	$3, 54(%r9,%r11), %xmm6, %xmm6
	vmovq	%xmm14, %r11
	leaq	(%rdx,%r11,2), %r11
	vpinsrw	$4, 56(%r9,%r11), %xmm6, %xmm16
	vmovq	%xmm7, %r11
	vpaddq	%zmm8, %zmm1, %zmm11
	vpaddq	%zmm8, %zmm2, %zmm8
	leaq	(%rdx,%r11,2), %r11
	vpsraq	$63, %zmm11, %zmm11
	vpsraq	$63, %zmm8, %zmm8
	vpandq	%zmm19, %zmm11, %zmm11
	vpandq	%zmm19, %zmm8, %zmm8
	movzwl	32(%r9,%r11), %r11d
	vmovd	%r11d, %xmm6
	vpextrq	$1, %xmm7, %r11
	leaq	(%rdx,%r11,2), %r11
	vpinsrw	$1, 34(%r9,%r11), %xmm6, %xmm6
	vmovq	%xmm17, %r11
	leaq	(%rdx,%r11,2), %r11
	vpinsrw	$2, 36(%r9,%r11), %xmm6, %xmm6
	vpextrq	$1, %xmm17, %r11
	vextracti32x4	$2, %zmm7, %xmm17
	leaq	(%rdx,%r11,2), %r11
	vpinsrw	$3, 38(%r9,%r11), %xmm6, %xmm18
	vpinsrw	$7, 30(%r9,%r10), %xmm15, %xmm6
	vextracti32x4	$3, %zmm7, %xmm15
	vpinsrw	$7, 14(%r9,%r8), %xmm13, %xmm7
	vpextrq	$1, %xmm14, %r8
	vmovq	%xmm17, %r11
	vpextrq	$1, %xmm17, %r10
	leaq	(%rdx,%r8,2), %r8
	leaq	(%rdx,%r11,2), %r11
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$5, 58(%r9,%r8), %xmm16, %xmm14
	vmovq	%xmm12, %r8
	vextracti32x4	$1, %ymm12, %xmm16
	leaq	(%rdx,%r8,2), %r8
	vpinsrw	$4, 40(%r9,%r11), %xmm18, %xmm13
	vpextrq	$1, %xmm12, %r11
	vpextrq	$1, %xmm16, %rbx
	movzwl	80(%r9,%r8), %r8d
	vpinsrw	$5, 42(%r9,%r10), %xmm13, %xmm13
	vmovq	%xmm16, %r10
	vinserti128	$1, %xmm6, %ymm7, %ymm6
	leaq	(%rdx,%r10,2), %r10
	vpmovzxwd	%ymm6, %zmm6
	vmovd	%r8d, %xmm17
	leaq	(%rdx,%r11,2), %r8
	leaq	(%rdx,%rbx,2), %r11
	vpinsrw	$1, 82(%r9,%r8), %xmm17, %xmm16
	vpextrq	$1, %xmm15, %r8
	vpaddd	%zmm6, %zmm0, %zmm0
	leaq	(%rdx,%r8,2), %r8
	vpinsrw	$2, 84(%r9,%r10), %xmm16, %xmm16
	vmovq	%xmm9, %r10
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$3, 86(%r9,%r11), %xmm16, %xmm16
	vpextrq	$1, %xmm9, %r11
	vpinsrw	$6, 60(%r9,%r10), %xmm14, %xmm9
	vmovq	%xmm15, %r10
	vextracti32x4	$2, %zmm12, %xmm14
	vextracti32x4	$3, %zmm12, %xmm12
	leaq	(%rdx,%r10,2), %r10
	leaq	(%rdx,%r11,2), %r11
	vpinsrw	$6, 44(%r9,%r10), %xmm13, %xmm13
	vmovq	%xmm14, %r10
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$7, 62(%r9,%r11), %xmm9, %xmm9
	vpinsrw	$4, 88(%r9,%r10), %xmm16, %xmm15
	vpextrq	$1, %xmm14, %r10
	vpandq	%zmm19, %zmm10, %zmm14
	leaq	(%rdx,%r10,2), %r10
	vextracti32x4	$1, %ymm14, %xmm16
	vpextrq	$1, %xmm16, %r11
	leaq	(%rdx,%r11,2), %r11
	vpinsrw	$5, 90(%r9,%r10), %xmm15, %xmm10
	vmovq	%xmm12, %r10
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$6, 92(%r9,%r10), %xmm10, %xmm15
	vmovq	%xmm14, %r10
	leaq	(%rdx,%r10,2), %r10
	movzwl	64(%r9,%r10), %r10d
	vmovd	%r10d, %xmm10
	vpextrq	$1, %xmm14, %r10
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$1, 66(%r9,%r10), %xmm10, %xmm17
	vmovq	%xmm16, %r10
	vpinsrw	$7, 46(%r9,%r8), %xmm13, %xmm10
	vextracti32x4	$2, %zmm14, %xmm16
	vextracti32x4	$3, %zmm14, %xmm14
	leaq	(%rdx,%r10,2), %r10
	vmovq	%xmm16, %r8
	leaq	(%rdx,%r8,2), %r8
	vpinsrw	$2, 68(%r9,%r10), %xmm17, %xmm13
	vpextrq	$1, %xmm16, %r10
	vextracti32x4	$2, %zmm8, %xmm16
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$3, 70(%r9,%r11), %xmm13, %xmm13
	vmovq	%xmm14, %r11
	vinserti128	$1, %xmm9, %ymm10, %ymm7
	leaq	(%rdx,%r11,2), %r11
	vpmovzxwd	%ymm7, %zmm6
	vpinsrw	$4, 72(%r9,%r8), %xmm13, %xmm13
	vpextrq	$1, %xmm14, %r8
	leaq	(%rdx,%r8,2), %r8
	vpaddd	%zmm6, %zmm3, %zmm3
	vpinsrw	$5, 74(%r9,%r10), %xmm13, %xmm13
	vmovq	%xmm11, %r10
	leaq	(%rdx,%r10,2), %r10
	movzwl	112(%r9,%r10), %r10d
	vpinsrw	$6, 76(%r9,%r11), %xmm13, %xmm13
	vpextrq	$1, %xmm11, %r11
	vmovd	%r10d, %xmm14
	leaq	(%rdx,%r11,2), %r10
	vpinsrw	$1, 114(%r9,%r10), %xmm14, %xmm14
	vpextrq	$1, %xmm12, %r10
	vextracti128	$1, %ymm11, %xmm12
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$7, 94(%r9,%r10), %xmm15, %xmm15
	vmovq	%xmm12, %r10
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$2, 116(%r9,%r10), %xmm14, %xmm14
	vpextrq	$1, %xmm12, %r10
	vextracti32x4	$2, %zmm11, %xmm12
	vextracti32x4	$3, %zmm11, %xmm11
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$3, 118(%r9,%r10), %xmm14, %xmm14
	vmovq	%xmm12, %r10
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$4, 120(%r9,%r10), %xmm14, %xmm14
	vpextrq	$1, %xmm12, %r10
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$5, 122(%r9,%r10), %xmm14, %xmm12
	vmovq	%xmm11, %r10
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$6, 124(%r9,%r10), %xmm12, %xmm12
	vpextrq	$1, %xmm11, %r10
	vpinsrw	$7, 78(%r9,%r8), %xmm13, %xmm11
	vmovq	%xmm8, %r8
	vextracti128	$1, %ymm8, %xmm13
	leaq	(%rdx,%r8,2), %r8
	leaq	(%rdx,%r10,2), %r10
	movzwl	96(%r9,%r8), %r8d
	vpinsrw	$7, 126(%r9,%r10), %xmm12, %xmm12
	vpextrq	$1, %xmm8, %r10
	vextracti32x4	$3, %zmm8, %xmm8
	leaq	(%rdx,%r10,2), %r10
	vmovd	%r8d, %xmm14
	vpinsrw	$1, 98(%r9,%r10), %xmm14, %xmm14
	vmovq	%xmm13, %r8
	vpextrq	$1, %xmm13, %r10
	vinserti128	$1, %xmm15, %ymm11, %ymm9
	leaq	(%rdx,%r8,2), %r8
	leaq	(%rdx,%r10,2), %r10
	vpmovzxwd	%ymm9, %zmm6
	vpinsrw	$2, 100(%r9,%r8), %xmm14, %xmm13
	vmovq	%xmm16, %r8
	leaq	(%rdx,%r8,2), %r8
	vpaddd	%zmm6, %zmm4, %zmm4
	vpbroadcastq	(%rbp), %zmm6
	vpinsrw	$3, 102(%r9,%r10), %xmm13, %xmm13
	vpextrq	$1, %xmm16, %r10
	leaq	(%rdx,%r10,2), %r10
	vpinsrw	$4, 104(%r9,%r8), %xmm13, %xmm13
	vmovq	%xmm8, %r8
	leaq	(%rdx,%r8,2), %r8
	vpaddq	%zmm6, %zmm1, %zmm1
	vpaddq	%zmm6, %zmm2, %zmm2
	vpinsrw	$5, 106(%r9,%r10), %xmm13, %xmm13
	vpinsrw	$6, 108(%r9,%r8), %xmm13, %xmm13
	vpextrq	$1, %xmm8, %r8
	leaq	(%rdx,%r8,2), %r8
	vpinsrw	$7, 110(%r9,%r8), %xmm13, %xmm8
	subq	$-128, %r9
	vinserti128	$1, %xmm12, %ymm8, %ymm8
	vpmovzxwd	%ymm8, %zmm7
	vpaddd	%zmm7, %zmm5, %zmm5
	cmpq	%r9, %rcx
	jne	.LBB0_40
	vpaddd	%zmm0, %zmm3, %zmm0
	movq	104(%rsp), %r11
	movq	1024(%rsp), %r15
	movq	40(%rsp), %rbp
	movq	912(%rsp), %rax
	vpaddd	%zmm0, %zmm4, %zmm0
	vpaddd	%zmm0, %zmm5, %zmm0
	vextracti64x4	$1, %zmm0, %ymm1
	vpaddd	%zmm1, %zmm0, %zmm0
	vextracti128	$1, %ymm0, %xmm1
	vpaddd	%xmm1, %xmm0, %xmm0
	vpshufd	$238, %xmm0, %xmm1
	vpaddd	%xmm1, %xmm0, %xmm0
	vpshufd	$85, %xmm0, %xmm1
	vpaddd	%xmm1, %xmm0, %xmm0
	vmovd	%xmm0, (%r11,%rsi,4)
	cmpq	56(%rsp), %rax
	je	.LBB0_34
	testb	$56, 80(%rsp)
	vmovd	%xmm0, %r8d
	je	.LBB0_49
	movq	56(%rsp), %r9
	movq	232(%rsp), %rcx
.LBB0_44:
	movq	112(%rsp), %rax
	vpbroadcastq	%rcx, %zmm1
	vmovd	%r8d, %xmm0
	xorl	%r10d, %r10d
	vpaddq	%zmm24, %zmm1, %zmm1
	movq	%rax, %r8
	subq	%r9, %r8
	leaq	(%rdx,%r9,2), %r9
	addq	%rax, %rdi
	.p2align	4
.LBB0_45:
	vpsraq	$63, %zmm1, %zmm2
	vpaddq	%zmm25, %zmm1, %zmm1
	vpandq	%zmm19, %zmm2, %zmm2
	vmovq	%xmm2, %r11
	vpextrq	$1, %xmm2, %rbx
	vextracti128	$1, %ymm2, %xmm3
	leaq	(%r9,%r11,2), %r11
	leaq	(%r9,%rbx,2), %rbx
	vmovq	%xmm3, %r12
	vpextrq	$1, %xmm3, %rbp
	vextracti32x4	$2, %zmm2, %xmm3
	vextracti32x4	$3, %zmm2, %xmm2
	vmovq	%xmm2, %r13
	vpextrq	$1, %xmm2, %rax
	leaq	(%r9,%r12,2), %r12
	leaq	(%r9,%rbp,2), %rbp
	vmovq	%xmm3, %rcx
	vpextrq	$1, %xmm3, %r15
	movzwl	(%r11,%r10,2), %r11d
	leaq	(%r9,%rcx,2), %rcx
	leaq	(%r9,%r15,2), %r15
	leaq	(%r9,%r13,2), %r13
	leaq	(%r9,%rax,2), %rax
	vmovd	%r11d, %xmm2
	vpinsrw	$1, 2(%rbx,%r10,2), %xmm2, %xmm2
	vpinsrw	$2, 4(%r12,%r10,2), %xmm2, %xmm2
	vpinsrw	$3, 6(%rbp,%r10,2), %xmm2, %xmm2
	vpinsrw	$4, 8(%rcx,%r10,2), %xmm2, %xmm2
	vpinsrw	$5, 10(%r15,%r10,2), %xmm2, %xmm2
	vpinsrw	$6, 12(%r13,%r10,2), %xmm2, %xmm2
	vpinsrw	$7, 14(%rax,%r10,2), %xmm2, %xmm2
	addq	$8, %r10
	vpmovzxwd	%xmm2, %ymm2
	vpaddd	%ymm2, %ymm0, %ymm0
	cmpq	%r10, %r8
	jne	.LBB0_45
	vextracti128	$1, %ymm0, %xmm1
	movq	104(%rsp), %r11
	movq	112(%rsp), %rax
	movq	1024(%rsp), %r15
	movq	960(%rsp), %r13
	movq	40(%rsp), %rbp
	movabsq	$.LCPI0_2, %r12
	vpaddd	%xmm1, %xmm0, %xmm0
	vpshufd	$238, %xmm0, %xmm1
	vpaddd	%xmm1, %xmm0, %xmm0
	vpshufd	$85, %xmm0, %xmm1
	vpaddd	%xmm1, %xmm0, %xmm0
	vmovd	%xmm0, (%r11,%rsi,4)
	cmpq	%rax, 912(%rsp)
	je	.LBB0_34
	movq	200(%rsp), %r9
	vmovd	%xmm0, %r8d
	incq	%r9
	.p2align	4
.LBB0_48:
	movq	%rdi, %r10
	sarq	$63, %r10
	decq	%r9
	andq	%r13, %r10
	leaq	(%r14,%r10,2), %r10
	movzwl	(%r10,%rdi,2), %r10d
	incq	%rdi
	addl	%r10d, %r8d
	movl	%r8d, (%r11,%rsi,4)
	cmpq	$1, %r9
	jg	.LBB0_48
	jmp	.LBB0_34
.LBB0_49:
	movq	152(%rsp), %r9
	addq	56(%rsp), %rdi
	incq	%r9
	jmp	.LBB0_48
.LBB0_50:
	xorl	%eax, %eax
	cmpq	$16, %r15
	jb	.LBB0_55
	movq	120(%rsp), %rcx
	movq	16(%rsp), %rdx
	.p2align	4
.LBB0_52:
	vmovdqu64	(%r14,%rax,4), %zmm0
	vmovdqu64	64(%r14,%rax,4), %zmm1
	vmovdqa64	%zmm0, %zmm2
	vmovdqa64	%zmm0, %zmm3
	vmovdqa64	%zmm0, %zmm4
	vpermt2w	%zmm1, %zmm23, %zmm0
	vpermt2w	%zmm1, %zmm21, %zmm3
	vpermt2w	%zmm1, %zmm20, %zmm2
	vpermt2w	%zmm1, %zmm22, %zmm4
	vpmovzxwd	%ymm3, %zmm5
	vpmovzxwd	%ymm2, %zmm1
	vpmovzxwd	%ymm4, %zmm3
	vpmovzxwd	%ymm0, %zmm0
	vpaddd	%zmm1, %zmm5, %zmm1
	vpaddd	%zmm0, %zmm3, %zmm0
	vpaddd	%zmm0, %zmm1, %zmm0
	vmovdqu64	%zmm0, (%rdx,%rax,2)
	addq	$32, %rax
	cmpq	%rax, %rcx
	jne	.LBB0_52
	cmpq	88(%rsp), %r15
	je	.LBB0_63
	movq	88(%rsp), %rcx
	movq	%rcx, %rax
	testb	$12, %r15b
	je	.LBB0_58
.LBB0_55:
	movq	128(%rsp), %rdx
	movq	16(%rsp), %rcx
	.p2align	4
.LBB0_56:
	vmovdqu	(%r14,%rax,8), %ymm0
	vpmovqw	%ymm0, %xmm1
	vpsrlq	$16, %ymm0, %ymm2
	vpsrlq	$32, %ymm0, %ymm3
	vpsrlq	$48, %ymm0, %ymm0
	vpmovqw	%ymm2, %xmm2
	vpmovqw	%ymm3, %xmm3
	vpmovqw	%ymm0, %xmm0
	vpmovzxwd	%xmm1, %xmm1
	vpmovzxwd	%xmm2, %xmm2
	vpmovzxwd	%xmm3, %xmm3
	vpmovzxwd	%xmm0, %xmm0
	vpaddd	%xmm1, %xmm2, %xmm1
	vpaddd	%xmm0, %xmm3, %xmm0
	vpaddd	%xmm0, %xmm1, %xmm0
	vmovdqu	%xmm0, (%rcx,%rax,4)
	addq	$4, %rax
	cmpq	%rax, %rdx
	jne	.LBB0_56
	movq	%rdx, %rcx
	cmpq	%rdx, %r15
	je	.LBB0_63
.LBB0_58:
	movq	16(%rsp), %r10
	movl	%r15d, %edx
	subl	%ecx, %edx
	leaq	6(%r14), %r9
	movq	%rcx, %rax
	andl	$7, %edx
	je	.LBB0_61
	movq	%rcx, %rax
	.p2align	4
.LBB0_60:
	movzwl	-6(%r9,%rax,8), %esi
	movzwl	-4(%r9,%rax,8), %edi
	movzwl	-2(%r9,%rax,8), %r11d
	movzwl	(%r9,%rax,8), %r8d
	addl	%esi, %edi
	addl	%r11d, %r8d
	addl	%edi, %r8d
	decq	%rdx
	movl	%r8d, (%r10,%rax,4)
	leaq	1(%rax), %rax
	jne	.LBB0_60
.LBB0_61:
	subq	%r15, %rcx
	cmpq	$-8, %rcx
	ja	.LBB0_63
	.p2align	4
.LBB0_62:
	movzwl	(%r14,%rax,8), %ecx
	movzwl	2(%r14,%rax,8), %edx
	movzwl	6(%r14,%rax,8), %esi
	movq	16(%rsp), %rdi
	addl	%ecx, %edx
	movzwl	4(%r14,%rax,8), %ecx
	addl	%ecx, %esi
	addl	%edx, %esi
	movl	%esi, (%rdi,%rax,4)
	movzwl	8(%r14,%rax,8), %ecx
	movzwl	10(%r14,%rax,8), %edx
	movzwl	14(%r14,%rax,8), %esi
	addl	%ecx, %edx
	movzwl	12(%r14,%rax,8), %ecx
	addl	%ecx, %esi
	addl	%edx, %esi
	movl	%esi, 4(%rdi,%rax,4)
	movzwl	16(%r14,%rax,8), %ecx
	movzwl	18(%r14,%rax,8), %edx
	movzwl	22(%r14,%rax,8), %esi
	addl	%ecx, %edx
	movzwl	20(%r14,%rax,8), %ecx
	addl	%ecx, %esi
	addl	%edx, %esi
	movl	%esi, 8(%rdi,%rax,4)
	movzwl	24(%r14,%rax,8), %ecx
	movzwl	26(%r14,%rax,8), %edx
	movzwl	30(%r14,%rax,8), %esi
	addl	%ecx, %edx
	movzwl	28(%r14,%rax,8), %ecx
	addl	%ecx, %esi
	addl	%edx, %esi
	movl	%esi, 12(%rdi,%rax,4)
	movzwl	32(%r14,%rax,8), %ecx
	movzwl	34(%r14,%rax,8), %edx
	movzwl	38(%r14,%rax,8), %esi
	addl	%ecx, %edx
	movzwl	36(%r14,%rax,8), %ecx
	addl	%ecx, %esi
	addl	%edx, %esi
	movl	%esi, 16(%rdi,%rax,4)
	movzwl	40(%r14,%rax,8), %ecx
	movzwl	42(%r14,%rax,8), %edx
	movzwl	46(%r14,%rax,8), %esi
	addl	%ecx, %edx
	movzwl	44(%r14,%rax,8), %ecx
	addl	%ecx, %esi
	addl	%edx, %esi
	movl	%esi, 20(%rdi,%rax,4)
	movzwl	48(%r14,%rax,8), %ecx
	movzwl	50(%r14,%rax,8), %edx
	movzwl	54(%r14,%rax,8), %esi
	addl	%ecx, %edx
	movzwl	52(%r14,%rax,8), %ecx
	addl	%ecx, %esi
	addl	%edx, %esi
	movl	%esi, 24(%rdi,%rax,4)
	movzwl	56(%r14,%rax,8), %ecx
	movzwl	58(%r14,%rax,8), %edx
	movzwl	60(%r14,%rax,8), %r8d
	movzwl	62(%r14,%rax,8), %esi
	addl	%ecx, %edx
	addl	%r8d, %esi
	addl	%edx, %esi
	movl	%esi, 28(%rdi,%rax,4)
	addq	$8, %rax
	cmpq	%rax, %r15
	jne	.LBB0_62
	.p2align	4
.LBB0_63:
	movq	32(%rsp), %rdx
	cmpq	$8, %r15
	jae	.LBB0_65
	movq	16(%rsp), %r10
	xorl	%eax, %eax
	jmp	.LBB0_74
	.p2align	4
.LBB0_65:
	movq	16(%rsp), %r10
	cmpq	$32, %r15
	jae	.LBB0_67
	xorl	%ecx, %ecx
	jmp	.LBB0_71
.LBB0_67:
	movq	144(%rsp), %rcx
	vmovq	%rdx, %xmm0
	vpxor	%xmm1, %xmm1, %xmm1
	xorl	%eax, %eax
	vpxor	%xmm2, %xmm2, %xmm2
	vpxor	%xmm3, %xmm3, %xmm3
	.p2align	4
.LBB0_68:
	vpmovsxdq	32(%r10,%rax,4), %zmm5
	vpmovsxdq	(%r10,%rax,4), %zmm4
	vpmovsxdq	64(%r10,%rax,4), %zmm6
	vpaddq	%zmm5, %zmm1, %zmm1
	vpmovsxdq	96(%r10,%rax,4), %zmm5
	vpaddq	%zmm4, %zmm0, %zmm0
	vpaddq	%zmm6, %zmm2, %zmm2
	addq	$32, %rax
	vpaddq	%zmm5, %zmm3, %zmm3
	cmpq	%rax, %rcx
	jne	.LBB0_68
	vpaddq	%zmm0, %zmm1, %zmm0
	vpaddq	%zmm0, %zmm2, %zmm0
	vpaddq	%zmm0, %zmm3, %zmm0
	vextracti64x4	$1, %zmm0, %ymm1
	vpaddq	%zmm1, %zmm0, %zmm0
	vextracti128	$1, %ymm0, %xmm1
	vpaddq	%xmm1, %xmm0, %xmm0
	vpshufd	$238, %xmm0, %xmm1
	vpaddq	%xmm1, %xmm0, %xmm0
	vmovq	%xmm0, %rdx
	cmpq	%rcx, %r15
	je	.LBB0_4
	movq	%rcx, %rax
	testb	$24, %r15b
	je	.LBB0_74
.LBB0_71:
	movq	160(%rsp), %rax
	vmovq	%rdx, %xmm0
	.p2align	4
.LBB0_72:
	vpmovsxdq	(%r10,%rcx,4), %zmm1
	addq	$8, %rcx
	vpaddq	%zmm1, %zmm0, %zmm0
	cmpq	%rcx, %rax
	jne	.LBB0_72
	vextracti64x4	$1, %zmm0, %ymm1
	vpaddq	%zmm1, %zmm0, %zmm0
	vextracti128	$1, %ymm0, %xmm1
	vpaddq	%xmm1, %xmm0, %xmm0
	vpshufd	$238, %xmm0, %xmm1
	vpaddq	%xmm1, %xmm0, %xmm0
	vmovq	%xmm0, %rdx
	jmp	.LBB0_75
	.p2align	4
.LBB0_74:
	movslq	(%r10,%rax,4), %rcx
	incq	%rax
	addq	%rcx, %rdx
.LBB0_75:
	cmpq	%rax, %r15
	jne	.LBB0_74
	jmp	.LBB0_4
.LBB0_76:
	testq	%r15, %r15
	jle	.LBB0_93
	leaq	(,%r15,4), %r8
	testq	%r13, %r13
	jle	.LBB0_97
	movabsq	$9223372036854775800, %rax
	leaq	96(%r10), %r12
	xorl	%edx, %edx
	movq	%r10, %rbp
	leaq	-24(%rax), %rcx
	andq	%r15, %rax
	andq	%r15, %rcx
	movq	%rax, 40(%rsp)
	xorl	%eax, %eax
	movq	%rcx, 64(%rsp)
	jmp	.LBB0_80
	.p2align	4
.LBB0_79:
	movq	24(%rsp), %rax
	addq	%r8, %r12
	addq	%r8, %rbp
	incq	%rax
	cmpq	1016(%rsp), %rax
	je	.LBB0_96
.LBB0_80:
	movq	%rdx, 32(%rsp)
	movq	72(%rsp), %rdx
	movq	%r8, %r13
	imulq	%rax, %r13
	addq	1008(%rsp), %r13
	movq	%rax, 24(%rsp)
	movabsq	$memset, %rax
	movq	%r14, %rdi
	xorl	%esi, %esi
	movq	%r8, %rbx
	vzeroupper
	callq	*%rax
	movabsq	$memset, %rax
	movq	%r13, %rdi
	xorl	%esi, %esi
	movq	%rbx, %rdx
	callq	*%rax
	cmpq	$8, %r15
	jae	.LBB0_82
	movq	32(%rsp), %rdx
	leaq	(,%r15,4), %r8
	xorl	%eax, %eax
	jmp	.LBB0_91
	.p2align	4
.LBB0_82:
	movq	32(%rsp), %rdx
	cmpq	$32, %r15
	jae	.LBB0_84
	xorl	%ecx, %ecx
	leaq	(,%r15,4), %r8
	jmp	.LBB0_88
	.p2align	4
.LBB0_84:
	movq	64(%rsp), %rcx
	vmovq	%rdx, %xmm0
	vpxor	%xmm1, %xmm1, %xmm1
	xorl	%eax, %eax
	vpxor	%xmm2, %xmm2, %xmm2
	vpxor	%xmm3, %xmm3, %xmm3
	.p2align	4
.LBB0_85:
	vpmovsxdq	-64(%r12,%rax,4), %zmm5
	vpmovsxdq	-96(%r12,%rax,4), %zmm4
	vpmovsxdq	-32(%r12,%rax,4), %zmm6
	vpaddq	%zmm5, %zmm1, %zmm1
	vpmovsxdq	(%r12,%rax,4), %zmm5
	vpaddq	%zmm4, %zmm0, %zmm0
	vpaddq	%zmm6, %zmm2, %zmm2
	addq	$32, %rax
	vpaddq	%zmm5, %zmm3, %zmm3
	cmpq	%rax, %rcx
	jne	.LBB0_85
	vpaddq	%zmm0, %zmm1, %zmm0
	leaq	(,%r15,4), %r8
	vpaddq	%zmm0, %zmm2, %zmm0
	vpaddq	%zmm0, %zmm3, %zmm0
	vextracti64x4	$1, %zmm0, %ymm1
	vpaddq	%zmm1, %zmm0, %zmm0
	vextracti128	$1, %ymm0, %xmm1
	vpaddq	%xmm1, %xmm0, %xmm0
	vpshufd	$238, %xmm0, %xmm1
	vpaddq	%xmm1, %xmm0, %xmm0
	vmovq	%xmm0, %rdx
	cmpq	%rcx, %r15
	je	.LBB0_79
	movq	%rcx, %rax
	testb	$24, %r15b
	je	.LBB0_91
.LBB0_88:
	movq	40(%rsp), %rax
	vmovq	%rdx, %xmm0
	.p2align	4
.LBB0_89:
	vpmovsxdq	(%rbp,%rcx,4), %zmm1
	addq	$8, %rcx
	vpaddq	%zmm1, %zmm0, %zmm0
	cmpq	%rcx, %rax
	jne	.LBB0_89
	vextracti64x4	$1, %zmm0, %ymm1
	vpaddq	%zmm1, %zmm0, %zmm0
	vextracti128	$1, %ymm0, %xmm1
	vpaddq	%xmm1, %xmm0, %xmm0
	vpshufd	$238, %xmm0, %xmm1
	vpaddq	%xmm1, %xmm0, %xmm0
	vmovq	%xmm0, %rdx
	jmp	.LBB0_92
	.p2align	4
.LBB0_91:
	movslq	(%rbp,%rax,4), %rcx
	incq	%rax
	addq	%rcx, %rdx
.LBB0_92:
	cmpq	%rax, %r15
	jne	.LBB0_91
	jmp	.LBB0_79
.LBB0_93:
	testq	%r13, %r13
	jle	.LBB0_95
	movq	72(%rsp), %rdx
	movabsq	$memset, %rax
	movq	%r14, %rdi
	xorl	%esi, %esi
	callq	*%rax
.LBB0_95:
	xorl	%edx, %edx
.LBB0_96:
	movq	136(%rsp), %rax
	movq	%rdx, (%rax)
	xorl	%eax, %eax
	addq	$744, %rsp
	.cfi_def_cfa_offset 56
	popq	%rbx
	.cfi_def_cfa_offset 48
	popq	%r12
	.cfi_def_cfa_offset 40
	popq	%r13
	.cfi_def_cfa_offset 32
	popq	%r14
	.cfi_def_cfa_offset 24
	popq	%r15
	.cfi_def_cfa_offset 16
	popq	%rbp
	.cfi_def_cfa_offset 8
	vzeroupper
	retq
.LBB0_97:
	.cfi_def_cfa_offset 800
	movabsq	$9223372036854775800, %rbx
	leaq	96(%r10), %r12
	xorl	%edx, %edx
	movq	%r10, %rbp
	xorl	%esi, %esi
	leaq	-24(%rbx), %r14
	andq	%r15, %rbx
	andq	%r15, %r14
	jmp	.LBB0_99
	.p2align	4
.LBB0_98:
	incq	%rsi
	addq	%r8, %r12
	addq	%r8, %rbp
	cmpq	1016(%rsp), %rsi
	je	.LBB0_96
.LBB0_99:
	movq	%r8, %rdi
	imulq	%rsi, %rdi
	addq	1008(%rsp), %rdi
	movabsq	$memset, %rax
	movq	%rdx, %r13
	movq	%rsi, 24(%rsp)
	xorl	%esi, %esi
	movq	%r8, %rdx
	vzeroupper
	callq	*%rax
	cmpq	$8, %r15
	jae	.LBB0_101
	movq	24(%rsp), %rsi
	xorl	%eax, %eax
	movq	%r13, %rdx
	leaq	(,%r15,4), %r8
	jmp	.LBB0_110
	.p2align	4
.LBB0_101:
	movq	%r13, %rdx
	cmpq	$32, %r15
	jae	.LBB0_103
	movq	24(%rsp), %rsi
	xorl	%ecx, %ecx
	leaq	(,%r15,4), %r8
	jmp	.LBB0_107
	.p2align	4
.LBB0_103:
	vmovq	%rdx, %xmm0
	vpxor	%xmm1, %xmm1, %xmm1
	xorl	%eax, %eax
	vpxor	%xmm2, %xmm2, %xmm2
	vpxor	%xmm3, %xmm3, %xmm3
	.p2align	4
.LBB0_104:
	vpmovsxdq	-64(%r12,%rax,4), %zmm5
	vpmovsxdq	-96(%r12,%rax,4), %zmm4
	vpmovsxdq	-32(%r12,%rax,4), %zmm6
	vpaddq	%zmm5, %zmm1, %zmm1
	vpmovsxdq	(%r12,%rax,4), %zmm5
	vpaddq	%zmm4, %zmm0, %zmm0
	vpaddq	%zmm6, %zmm2, %zmm2
	addq	$32, %rax
	vpaddq	%zmm5, %zmm3, %zmm3
	cmpq	%rax, %r14
	jne	.LBB0_104
	vpaddq	%zmm0, %zmm1, %zmm0
	movq	24(%rsp), %rsi
	leaq	(,%r15,4), %r8
	vpaddq	%zmm0, %zmm2, %zmm0
	vpaddq	%zmm0, %zmm3, %zmm0
	vextracti64x4	$1, %zmm0, %ymm1
	vpaddq	%zmm1, %zmm0, %zmm0
	vextracti128	$1, %ymm0, %xmm1
	vpaddq	%xmm1, %xmm0, %xmm0
	vpshufd	$238, %xmm0, %xmm1
	vpaddq	%xmm1, %xmm0, %xmm0
	vmovq	%xmm0, %rdx
	cmpq	%r14, %r15
	je	.LBB0_98
	movq	%r14, %rcx
	movq	%r14, %rax
	testb	$24, %r15b
	je	.LBB0_110
.LBB0_107:
	vmovq	%rdx, %xmm0
	.p2align	4
.LBB0_108:
	vpmovsxdq	(%rbp,%rcx,4), %zmm1
	addq	$8, %rcx
	vpaddq	%zmm1, %zmm0, %zmm0
	cmpq	%rcx, %rbx
	jne	.LBB0_108
	vextracti64x4	$1, %zmm0, %ymm1
	movq	%rbx, %rax
	vpaddq	%zmm1, %zmm0, %zmm0
	vextracti128	$1, %ymm0, %xmm1
	vpaddq	%xmm1, %xmm0, %xmm0
	vpshufd	$238, %xmm0, %xmm1
	vpaddq	%xmm1, %xmm0, %xmm0
	vmovq	%xmm0, %rdx
	cmpq	%rbx, %r15
	je	.LBB0_98
	.p2align	4
.LBB0_110:
	movslq	(%rbp,%rax,4), %rcx
	incq	%rax
	addq	%rcx, %rdx
	cmpq	%rax, %r15
	jne	.LBB0_110
	jmp	.LBB0_98
.Lfunc_end0:
	.size	_ZN7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE, .Lfunc_end0-_ZN7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE
	.cfi_endproc

	.globl	_ZN7cpython7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE
	.p2align	4
	.type	_ZN7cpython7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE,@function
_ZN7cpython7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	pushq	%r15
	.cfi_def_cfa_offset 24
	pushq	%r14
	.cfi_def_cfa_offset 32
	pushq	%r13
	.cfi_def_cfa_offset 40
	pushq	%r12
	.cfi_def_cfa_offset 48
	pushq	%rbx
	.cfi_def_cfa_offset 56
	subq	$696, %rsp
	.cfi_def_cfa_offset 752
	.cfi_offset %rbx, -56
	.cfi_offset %r12, -48
	.cfi_offset %r13, -40
	.cfi_offset %r14, -32
	.cfi_offset %r15, -24
	.cfi_offset %rbp, -16
	leaq	344(%rsp), %rax
	movq	%rsi, %rdi
	movabsq	$.const.cell_changes, %rsi
	movabsq	$PyArg_UnpackTuple, %r10
	leaq	376(%rsp), %r8
	leaq	368(%rsp), %r9
	movl	$5, %edx
	movl	$5, %ecx
	movq	%rax, 16(%rsp)
	leaq	352(%rsp), %rax
	movq	%rax, 8(%rsp)
	leaq	360(%rsp), %rax
	movq	%rax, (%rsp)
	xorl	%eax, %eax
	callq	*%r10
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%ymm0, 384(%rsp)
	vmovups	%ymm0, 408(%rsp)
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%zmm0, 464(%rsp)
	movq	$0, 528(%rsp)
	movq	$0, 256(%rsp)
	testl	%eax, %eax
	je	.LBB1_1
	movabsq	$_ZN08NumbaEnv7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE, %rax
	cmpq	$0, (%rax)
	je	.LBB1_4
	movq	376(%rsp), %rdi
	movabsq	$NRT_adapt_ndarray_from_python, %rbx
	leaq	624(%rsp), %rsi
	vmovups	%zmm0, 624(%rsp)
	movq	$0, 688(%rsp)
	vzeroupper
	callq	*%rbx
	cmpq	$1, 648(%rsp)
	setne	%cl
	testl	%eax, %eax
	setne	%bpl
	orb	%cl, %bpl
	cmpb	$1, %bpl
	je	.LBB1_7
	testb	%bpl, %bpl
	jne	.LBB1_1
.LBB1_9:
	movq	368(%rsp), %rdi
	movq	624(%rsp), %r12
	movq	656(%rsp), %r14
	movq	664(%rsp), %r15
	movq	672(%rsp), %r13
	leaq	544(%rsp), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%zmm0, 544(%rsp)
	movq	$0, 608(%rsp)
	vzeroupper
	callq	*%rbx
	cmpq	$1, 568(%rsp)
	setne	%cl
	testl	%eax, %eax
	setne	%bpl
	orb	%cl, %bpl
	jne	.LBB1_10
	testb	%bpl, %bpl
	jne	.LBB1_12
.LBB1_14:
	movq	584(%rsp), %rax
	movq	592(%rsp), %rcx
	movq	360(%rsp), %rdi
	movq	%r13, 328(%rsp)
	movq	544(%rsp), %r13
	movq	576(%rsp), %rbp
	movq	%r15, 336(%rsp)
	movq	%rax, 320(%rsp)
	movabsq	$PyNumber_Long, %rax
	movq	%rcx, 312(%rsp)
	callq	*%rax
	testq	%rax, %rax
	je	.LBB1_15
	movq	%rax, %r15
	movabsq	$PyLong_AsLongLong, %rax
	movq	%r15, %rdi
	callq	*%rax
	movq	%rax, 264(%rsp)
	movabsq	$Py_DecRef, %rax
	movq	%r15, %rdi
	callq	*%rax
	movabsq	$PyErr_Occurred, %rax
	callq	*%rax
	testq	%rax, %rax
	jne	.LBB1_24
.LBB1_18:
	movq	352(%rsp), %rdi
	leaq	384(%rsp), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%ymm0, 384(%rsp)
	vmovups	%ymm0, 408(%rsp)
	vzeroupper
	callq	*%rbx
	testl	%eax, %eax
	jne	.LBB1_20
	cmpq	$2, 408(%rsp)
	jne	.LBB1_20
	movq	416(%rsp), %rax
	movq	344(%rsp), %rdi
	movq	384(%rsp), %r15
	leaq	464(%rsp), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%zmm0, 464(%rsp)
	movq	$0, 528(%rsp)
	movq	%rax, 304(%rsp)
	movq	424(%rsp), %rax
	movq	%rax, 296(%rsp)
	vzeroupper
	callq	*%rbx
	testl	%eax, %eax
	jne	.LBB1_23
	cmpq	$4, 488(%rsp)
	jne	.LBB1_23
	vmovaps	496(%rsp), %xmm0
	movq	464(%rsp), %rbx
	movq	%r14, 272(%rsp)
	movq	%r15, %r14
	movq	%r12, %r15
	movq	512(%rsp), %r12
	movabsq	$PyEval_SaveThread, %rax
	movq	%rbx, 288(%rsp)
	vmovaps	%xmm0, 448(%rsp)
	callq	*%rax
	vmovaps	448(%rsp), %xmm0
	movq	%rax, 280(%rsp)
	movq	$0, 256(%rsp)
	movq	%r12, 224(%rsp)
	vmovups	%xmm0, 208(%rsp)
	movq	%rbx, 176(%rsp)
	movq	%r14, 120(%rsp)
	movq	%rbp, 72(%rsp)
	movq	%r13, 40(%rsp)
	movq	304(%rsp), %rdx
	movq	264(%rsp), %rdi
	movq	296(%rsp), %rax
	movq	%rdx, 152(%rsp)
	movq	312(%rsp), %rdx
	movq	%rdi, 112(%rsp)
	movq	320(%rsp), %rdi
	movq	%rax, 160(%rsp)
	movabsq	$_ZN7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE, %rax
	movq	%rdx, 88(%rsp)
	movq	328(%rsp), %rdx
	movq	%rdi, 80(%rsp)
	movq	336(%rsp), %rdi
	movq	%rdx, 16(%rsp)
	movq	272(%rsp), %rdx
	movq	%rdi, 8(%rsp)
	leaq	256(%rsp), %rdi
	movq	%rdx, (%rsp)
	movq	%r15, %rdx
	callq	*%rax
	movq	280(%rsp), %rdi
	movq	256(%rsp), %r12
	movl	%eax, %ebp
	movabsq	$PyEval_RestoreThread, %rax
	callq	*%rax
	movabsq	$NRT_decref, %rbx
	movq	%r15, %rdi
	callq	*%rbx
	movq	%r13, %rdi
	callq	*%rbx
	movq	%r14, %rdi
	callq	*%rbx
	movq	288(%rsp), %rdi
	callq	*%rbx
	testl	%ebp, %ebp
	jne	.LBB1_26
	movabsq	$PyLong_FromLongLong, %rax
	movq	%r12, %rdi
	callq	*%rax
.LBB1_2:
	addq	$696, %rsp
	.cfi_def_cfa_offset 56
	popq	%rbx
	.cfi_def_cfa_offset 48
	popq	%r12
	.cfi_def_cfa_offset 40
	popq	%r13
	.cfi_def_cfa_offset 32
	popq	%r14
	.cfi_def_cfa_offset 24
	popq	%r15
	.cfi_def_cfa_offset 16
	popq	%rbp
	.cfi_def_cfa_offset 8
	vzeroupper
	retq
.LBB1_26:
	.cfi_def_cfa_offset 752
	jg	.LBB1_32
	cmpl	$-1, %ebp
	je	.LBB1_1
	cmpl	$-3, %ebp
	jne	.LBB1_30
	movabsq	$PyExc_StopIteration, %rdi
	movabsq	$PyErr_SetNone, %rax
	callq	*%rax
	jmp	.LBB1_1
.LBB1_4:
	movabsq	$PyExc_RuntimeError, %rdi
	movabsq	$".const.missing Environment: _ZN08NumbaEnv7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE", %rsi
	jmp	.LBB1_5
.LBB1_7:
	movabsq	$PyExc_TypeError, %rdi
	movabsq	$".const.can't unbox array from PyObject into native value.  The object maybe of a different type", %rsi
	movabsq	$PyErr_SetString, %rax
	callq	*%rax
	testb	%bpl, %bpl
	je	.LBB1_9
	jmp	.LBB1_1
.LBB1_10:
	movabsq	$PyExc_TypeError, %rdi
	movabsq	$".const.can't unbox array from PyObject into native value.  The object maybe of a different type", %rsi
	movabsq	$PyErr_SetString, %rax
	callq	*%rax
	testb	%bpl, %bpl
	je	.LBB1_14
	jmp	.LBB1_12
.LBB1_15:
	movq	$0, 264(%rsp)
	movabsq	$PyErr_Occurred, %rax
	callq	*%rax
	testq	%rax, %rax
	je	.LBB1_18
	jmp	.LBB1_24
.LBB1_20:
	movabsq	$PyExc_TypeError, %rdi
	movabsq	$".const.can't unbox array from PyObject into native value.  The object maybe of a different type", %rsi
	movabsq	$PyErr_SetString, %rax
	callq	*%rax
	jmp	.LBB1_24
.LBB1_23:
	movabsq	$PyExc_TypeError, %rdi
	movabsq	$".const.can't unbox array from PyObject into native value.  The object maybe of a different type", %rsi
	movabsq	$PyErr_SetString, %rax
	callq	*%rax
	movabsq	$NRT_decref, %rax
	movq	%r15, %rdi
	callq	*%rax
.LBB1_24:
	movabsq	$NRT_decref, %rax
	movq	%r13, %rdi
	callq	*%rax
.LBB1_12:
	movabsq	$NRT_decref, %rax
	movq	%r12, %rdi
	callq	*%rax
	jmp	.LBB1_1
.LBB1_30:
	movabsq	$PyExc_SystemError, %rdi
	movabsq	$".const.unknown error when calling native function", %rsi
.LBB1_5:
	movabsq	$PyErr_SetString, %rax
	vzeroupper
	callq	*%rax
.LBB1_1:
	xorl	%eax, %eax
	jmp	.LBB1_2
.LBB1_32:
	movabsq	$PyErr_Clear, %rax
	callq	*%rax
.Lfunc_end1:
	.size	_ZN7cpython7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE, .Lfunc_end1-_ZN7cpython7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE
	.cfi_endproc

	.globl	cfunc._ZN7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE
	.p2align	4
	.type	cfunc._ZN7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE,@function
cfunc._ZN7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE:
	.cfi_startproc
	pushq	%r14
	.cfi_def_cfa_offset 16
	pushq	%rbx
	.cfi_def_cfa_offset 24
	subq	$264, %rsp
	.cfi_def_cfa_offset 288
	.cfi_offset %rbx, -24
	.cfi_offset %r14, -16
	vmovups	344(%rsp), %xmm0
	vmovaps	384(%rsp), %xmm1
	vmovups	424(%rsp), %xmm2
	vmovaps	480(%rsp), %xmm3
	movq	%rdi, %rdx
	movq	496(%rsp), %r10
	movq	288(%rsp), %rax
	movq	360(%rsp), %rsi
	movq	448(%rsp), %rdi
	movq	312(%rsp), %rcx
	movq	$0, 256(%rsp)
	movq	%r10, 224(%rsp)
	vmovups	%xmm3, 208(%rsp)
	movq	%rdi, 176(%rsp)
	vmovups	%xmm2, 152(%rsp)
	vmovups	%xmm1, 112(%rsp)
	movq	%rsi, 88(%rsp)
	vmovups	%xmm0, 72(%rsp)
	movq	%rax, 16(%rsp)
	movabsq	$_ZN7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE, %rax
	leaq	256(%rsp), %rdi
	movq	%rcx, 40(%rsp)
	movq	%r9, 8(%rsp)
	movq	%r8, (%rsp)
	callq	*%rax
	movq	256(%rsp), %rcx
	movl	$0, 252(%rsp)
	testl	%eax, %eax
	jne	.LBB2_1
.LBB2_5:
	movq	%rcx, %rax
	addq	$264, %rsp
	.cfi_def_cfa_offset 24
	popq	%rbx
	.cfi_def_cfa_offset 16
	popq	%r14
	.cfi_def_cfa_offset 8
	retq
.LBB2_1:
	.cfi_def_cfa_offset 288
	movq	%rcx, %r14
	movabsq	$numba_gil_ensure, %rcx
	leaq	252(%rsp), %rdi
	movl	%eax, %ebx
	callq	*%rcx
	testl	%ebx, %ebx
	jg	.LBB2_2
	movl	%ebx, %eax
	cmpl	$-1, %ebx
	je	.LBB2_4
	cmpl	$-3, %eax
	jne	.LBB2_3
	movabsq	$PyExc_StopIteration, %rdi
	movabsq	$PyErr_SetNone, %rax
	callq	*%rax
	jmp	.LBB2_4
.LBB2_3:
	movabsq	$PyExc_SystemError, %rdi
	movabsq	$".const.unknown error when calling native function.2", %rsi
	movabsq	$PyErr_SetString, %rax
	callq	*%rax
.LBB2_4:
	movabsq	$".const.<numba.core.cpu.CPUContext>", %rdi
	movabsq	$PyUnicode_FromString, %rax
	callq	*%rax
	movq	%rax, %rbx
	movabsq	$PyErr_WriteUnraisable, %rax
	movq	%rbx, %rdi
	callq	*%rax
	movabsq	$Py_DecRef, %rax
	movq	%rbx, %rdi
	callq	*%rax
	movabsq	$numba_gil_release, %rax
	leaq	252(%rsp), %rdi
	callq	*%rax
	movq	%r14, %rcx
	jmp	.LBB2_5
.LBB2_2:
	movabsq	$PyErr_Clear, %rax
	callq	*%rax
.Lfunc_end2:
	.size	cfunc._ZN7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE, .Lfunc_end2-cfunc._ZN7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE
	.cfi_endproc

	.weak	NRT_incref
	.p2align	4
	.type	NRT_incref,@function
NRT_incref:
	testq	%rdi, %rdi
	je	.LBB3_2
	lock		incq	(%rdi)
.LBB3_2:
	retq
.Lfunc_end3:
	.size	NRT_incref, .Lfunc_end3-NRT_incref

	.weak	NRT_decref
	.p2align	4
	.type	NRT_decref,@function
NRT_decref:
	.cfi_startproc
	testq	%rdi, %rdi
	je	.LBB4_2
	#MEMBARRIER
	lock		decq	(%rdi)
	je	.LBB4_3
.LBB4_2:
	retq
.LBB4_3:
	movabsq	$NRT_MemInfo_call_dtor, %rax
	#MEMBARRIER
	jmpq	*%rax
.Lfunc_end4:
	.size	NRT_decref, .Lfunc_end4-NRT_decref
	.cfi_endproc

	.type	.const.cell_changes,@object
	.section	.lrodata,"al",@progbits
.const.cell_changes:
	.asciz	"cell_changes"
	.size	.const.cell_changes, 13

	.type	_ZN08NumbaEnv7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE,@object
	.comm	_ZN08NumbaEnv7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE,8,8
	.type	".const.missing Environment: _ZN08NumbaEnv7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE",@object
	.p2align	4, 0x0
".const.missing Environment: _ZN08NumbaEnv7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE":
	.asciz	"missing Environment: _ZN08NumbaEnv7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE"
	.size	".const.missing Environment: _ZN08NumbaEnv7habitus5video5cells12cell_changesB3v17B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDALYIZgpSqwCKaAA_3d_3dE5ArrayIhLi2E1C7mutable7alignedE5ArrayIhLi2E1C7mutable7alignedEx5ArrayItLi1E1C7mutable7alignedE5ArrayIiLi2E1C7mutable7alignedE", 289

	.type	".const.can't unbox array from PyObject into native value.  The object maybe of a different type",@object
	.p2align	4, 0x0
".const.can't unbox array from PyObject into native value.  The object maybe of a different type":
	.asciz	"can't unbox array from PyObject into native value.  The object maybe of a different type"
	.size	".const.can't unbox array from PyObject into native value.  The object maybe of a different type", 89

	.type	".const.unknown error when calling native function",@object
	.p2align	4, 0x0
".const.unknown error when calling native function":
	.asciz	"unknown error when calling native function"
	.size	".const.unknown error when calling native function", 43

	.type	".const.unknown error when calling native function.2",@object
	.p2align	4, 0x0
".const.unknown error when calling native function.2":
	.asciz	"unknown error when calling native function"
	.size	".const.unknown error when calling native function.2", 43

	.type	".const.<numba.core.cpu.CPUContext>",@object
	.p2align	4, 0x0
".const.<numba.core.cpu.CPUContext>":
	.asciz	"<numba.core.cpu.CPUContext>"
	.size	".const.<numba.core.cpu.CPUContext>", 28

	.type	_ZN08NumbaEnv5numba7cpython8builtins6ol_max12_3clocals_3e4implB3v18B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDAxYh_2bqJnA4AOzNAE_3dE15StarArgUniTupleIhLi2EE,@object
	.comm	_ZN08NumbaEnv5numba7cpython8builtins6ol_max12_3clocals_3e4implB3v18B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDAxYh_2bqJnA4AOzNAE_3dE15StarArgUniTupleIhLi2EE,8,8
	.type	_ZN08NumbaEnv5numba7cpython8builtins6ol_min12_3clocals_3e4implB3v19B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDAxYh_2bqJnA4AOzNAE_3dE15StarArgUniTupleIhLi2EE,@object
	.comm	_ZN08NumbaEnv5numba7cpython8builtins6ol_min12_3clocals_3e4implB3v19B86c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAgXrKFt1X1erJ_2bXklRYnJJeq1msDAxYh_2bqJnA4AOzNAE_3dE15StarArgUniTupleIhLi2EE,8,8
	.section	".note.GNU-stack","",@progbits
